#pragma once
/// \file
/// The doorbell registers in one GPU's memory: which are in use, and what they hold.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "softnic/gpu/gpu_library.hpp"
#include "softnic/gpu/gpu_slots.hpp"

namespace belfry::softnic {

/// Any thread, and never with the NIC's lock held.
class GpuDoorbellPage {
 public:
  explicit GpuDoorbellPage(std::unique_ptr<GpuRegisterMemory> memory) : memory_(std::move(memory)) {}

  /// Lets kernels on `gpu` ring there. \return false: the driver refuses it, and why in `error`
  bool open_to(MemoryOwner gpu, std::string& error);
  /// A register that holds 0. \return null, and why in `error`
  std::uint64_t* take(std::string& error);
  void give_back(const std::uint64_t* gpu_register);

  bool holds(const std::uint64_t* gpu_register) const;
  /// Reads all that are in use, for value_of(). \return false where CUDA fails: then they are as before
  bool look();
  /// As of the last look().
  std::uint64_t value_of(const std::uint64_t* gpu_register) const;
  bool clear(const std::uint64_t* gpu_register);

 private:
  std::uint32_t index_of(const std::uint64_t* gpu_register) const;

  const std::unique_ptr<GpuRegisterMemory> memory_;
  mutable std::mutex mutex_;
  GpuSlots used_;                      ///< under mutex_, as the rest
  std::vector<std::uint64_t> values_;  ///< of the last look()
};

/// One for each GPU whose engine looks at one. They stay. Any thread, and never with the NIC's lock held.
class GpuDoorbellPages {
 public:
  /// \return null where there is none yet
  GpuDoorbellPage* find(MemoryOwner gpu);
  /// \return null where it cannot be made, and why in `error`
  GpuDoorbellPage* find_or_make(MemoryOwner gpu, GpuLibrary& library, std::string& error);

 private:
  std::mutex mutex_;
  std::map<MemoryOwner, GpuDoorbellPage> pages_;
};

}  // namespace belfry::softnic
