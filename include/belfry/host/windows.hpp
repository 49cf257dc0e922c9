#pragma once
/// \file
/// Windows: memory that is registered with the same size on every PE, so that (window, offset) names a byte
/// of any of them. One collective step makes them and tells every PE the others' addresses and keys.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "belfry/device/view.hpp"
#include "belfry/device/window.hpp"
#include "belfry/host/bootstrap.hpp"
#include "belfry/host/memory.hpp"
#include "belfry/host/queue_memory.hpp"

namespace belfry::host {

/// One window. `bytes` and `access` are the same on every PE; where its memory comes from is each PE's own.
struct WindowOptions {
  std::size_t bytes = 0;
  /// With Access::relaxed_ordering the window gets device::kWindowRelaxedOrdering, and no signal may lie in
  /// it.
  Access access = kAllAccess;
  /// Memory of the caller, `bytes` long and mapped for as long as the window lives; null: the window's own.
  void* adopt = nullptr;
  std::shared_ptr<QueueMemory> memory = nullptr;      ///< gives memory of its own; null: host memory
  AllocationOptions allocation = {};                  ///< of host memory of its own
  device::MemoryKind kind = device::MemoryKind::own;  ///< what that memory is to the device code that posts
};

/// A handle: copies share the windows, which are deregistered with the last of them and of the endpoints made
/// on them.
class Windows {
 public:
  /// Every PE calls it with a list that matches.
  /// \param timeout of the exchange
  /// Throws Error on every PE if it throws on one, the others' naming that rank: bad_argument (lists that do
  /// not match, with the rank and the difference; a window of 0 bytes), locked_memory, system, timed_out.
  Windows(Bootstrap& bootstrap, const ProtectionDomain& domain, std::span<const WindowOptions> options,
          std::chrono::nanoseconds timeout = std::chrono::seconds(60));

  std::uint32_t pe() const;
  std::uint32_t pe_count() const;
  std::uint32_t count() const;
  const ProtectionDomain& domain() const;

  // For each of these, a window or PE that does not exist throws Error (bad_argument).

  const Memory& memory(std::uint32_t window) const;  ///< this PE's
  const WindowDescription& remote(std::uint32_t window, std::uint32_t pe) const;
  device::LocalWindow local_entry(std::uint32_t window) const;
  device::RemoteWindow remote_entry(std::uint32_t window, std::uint32_t pe) const;
  device::MemoryKind kind(std::uint32_t window) const;
  /// The GPU whose memory it is, where its provider knows.
  std::optional<int> gpu(std::uint32_t window) const;
  /// The largest power of two that divides the window's address on every PE: an offset that is a multiple of
  /// it is aligned to it everywhere.
  std::uint64_t alignment(std::uint32_t window) const;

  /// One line a window.
  std::span<const std::string> decisions() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace belfry::host
