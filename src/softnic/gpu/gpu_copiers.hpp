#pragma once
/// \file
/// What copies GPU memory for the CPU's NIC: a copier for each GPU whose memory has been registered.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "softnic/firmware/keys.hpp"
#include "softnic/gpu/gpu_copier.hpp"
#include "softnic/gpu/gpu_library.hpp"

namespace belfry::softnic {

/// Any thread.
class GpuCopiers {
 public:
  /// Makes one, or says on stderr why there is none: keys of that GPU's memory are then out of reach. Never
  /// with the NIC's lock held.
  void add(MemoryOwner gpu, GpuLibrary& library);
  bool has(MemoryOwner gpu) const;

  // Once there is one.

  unsigned char* staging() const { return staging_; }
  /// As the copier's. False also while the process ends: CUDA may be gone by then.
  bool to_gpu(MemoryOwner gpu, void* to, const void* staged, std::size_t bytes);
  bool from_gpu(MemoryOwner gpu, void* staged, const void* from, std::size_t bytes);

  /// Waits for the end of a copy; there is none afterwards.
  void quit();

 private:
  template <class Copy>
  bool copy(MemoryOwner gpu, const Copy& copy);

  mutable std::mutex mutex_;  ///< of all below, and held during a copy
  std::map<MemoryOwner, std::unique_ptr<GpuCopier>> copiers_;
  unsigned char* staging_ = nullptr;  ///< set before a key names GPU memory
  bool quit_ = false;
  bool failed_ = false;  ///< and that was said
};

}  // namespace belfry::softnic
