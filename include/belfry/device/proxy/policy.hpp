#pragma once
/// \file
/// The choices of a kernel that uses the proxy.

#include <cstdint>

#include "belfry/port/function.hpp"
#include "belfry/port/scope.hpp"

namespace belfry::device::proxy {

/// How descriptors get into a ring.
enum class Protocol : std::uint8_t {
  tuned,         ///< one producer a ring, its index in a register, progress cached: one posted 16 B store
  shared_tuned,  ///< many producers: one reservation for a warp, progress cached in device memory
  baseline,      ///< the control: device atomic, read of the worker's progress, release of system scope
};

/// What a put announces about its payload.
enum class Form : std::uint8_t {
  payload_published,  ///< a fence comes first: for payload that this kernel has just written
  payload_visible,    ///< the bare store: for payload that is known to be visible to the NIC
};

struct DefaultProxyPolicy {
  static constexpr Protocol protocol = Protocol::tuned;
  static constexpr Form form = Form::payload_published;
  /// How far payload_published publishes. GPU scope needs assumption A1 (device/requirements.hpp) of the
  /// windows, and past the CPU that the worker is: docs/ordering.md.
  static constexpr port::Scope publish_scope = port::Scope::system;
  /// Taken by whoever writes it down here: every window that is put from lies in the memory of the GPU that
  /// wrote it. Setup does not check it, for it does not know who writes.
  static constexpr bool assume_own_memory = false;
  /// Windows, offsets, lengths and peers are checked before anything is enqueued.
  static constexpr bool check_arguments = true;
  /// A channel keeps the bounds of the windows used last in registers: on a GPU to load them again costs more
  /// than the rest of a put; a CPU has them in its cache, and too few registers.
  static constexpr bool remember_windows = BELFRY_FOR_GPU;
};

}  // namespace belfry::device::proxy
