#pragma once
/// \file
/// The NIC's GPU engines: one on each GPU that has queues in its memory, or one for all (BELFRY_SOFTNIC_GPU).
/// Keys may name memory of any GPU that the engine's has peer access to.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "softnic/gpu/gpu_driver.hpp"
#include "softnic/gpu/gpu_library.hpp"

namespace belfry::softnic {

class NicCore;

/// Calls may come from any thread, and never with the NIC's lock held, but for note_change().
class GpuEngines {
 public:
  explicit GpuEngines(NicCore& core);
  ~GpuEngines();
  GpuEngines(const GpuEngines&) = delete;
  GpuEngines& operator=(const GpuEngines&) = delete;

  /// Uses this in place of CUDA. Before anything else, for tests.
  void use(std::unique_ptr<GpuLibrary> library);

  /// Whose memory the range is. The first such question of a process that uses CUDA loads the library.
  MemoryOwner owner_of(const void* address, std::size_t bytes);

  /// The GPU whose engine executes queues that lie in a GPU's memory: it is there when this returns.
  /// \return kHostMemory where there is none, which stderr tells
  MemoryOwner engine_for(MemoryOwner owner);

  /// Objects have changed in a way that may wait until an engine next starts, or until a settle().
  void note_change() { changes_.fetch_add(1, std::memory_order_release); }

  /// Where kernels on `gpu` ring in place of a register, in the memory of the GPU whose engine looks there
  /// (GpuDoorbells::gpu), until it is handed back.
  /// \return null with an empty `error`: at the register; null with a reason: nowhere
  std::uint64_t* register_of(const void* doorbell, MemoryOwner gpu, std::string& error);
  void return_register(std::uint64_t* gpu_register);

  /// Returns when no engine touches anything but what the NIC's objects name now.
  void settle();

 private:
  bool load();
  void meet(MemoryOwner gpu);
  GpuDriver* find(MemoryOwner gpu) const;
  GpuDriver* make(MemoryOwner gpu);
  void stop_at_exit();
  /// A register of a UAR page.
  struct Register {
    std::uint32_t uar = 0;
    unsigned index = 0;
  };
  bool find_register(const void* doorbell, Register& found) const;
  MemoryOwner engine_of(const Register& at, std::string& error);
  void set_register(const Register& at, const std::uint64_t* gpu_register);

  NicCore& core_;
  std::once_flag loaded_;
  std::unique_ptr<GpuLibrary> library_;
  std::atomic<std::uint64_t> changes_{1};
  GpuPins pins_;
  GpuDoorbellPages pages_;

  /// A register in GPU memory that has been handed out.
  struct Given {
    Register at;
    GpuDoorbellPage* page = nullptr;
    unsigned users = 0;
  };
  std::mutex registers_mutex_;
  std::map<const std::uint64_t*, Given> given_;  ///< under registers_mutex_

  std::mutex mutex_;
  std::set<MemoryOwner> seen_;                       ///< GPUs whose memory has been registered; under mutex_
  std::set<MemoryOwner> failed_;                     ///< GPUs on which no engine could be made; under mutex_
  std::vector<std::unique_ptr<GpuDriver>> drivers_;  ///< under mutex_; they stay; their threads use the rest
};

}  // namespace belfry::softnic
