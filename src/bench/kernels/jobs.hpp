#pragma once
/// \file
/// What measured kernels are given, and what they leave behind: plain structs, passed by value. Pointers are
/// to memory that the kernel writes and the host reads afterwards (KernelRunner::allocate).

#include <cstdint>

#include "belfry/device/status.hpp"
#include "belfry/device/view.hpp"
#include "bench/kernels/ticks.hpp"

namespace belfry::bench {

/// The longest that a kernel waits for one event.
inline constexpr std::uint64_t kKernelWaitSeconds = 20;

/// Slots of one size, used in turns.
struct Slots {
  device::Place begin;
  std::uint32_t stride = 8;  ///< bytes
  std::uint32_t count = 1;

  BELFRY_FN device::Place at(std::uint64_t i) const { return begin + i % count * stride; }
};

/// How a kernel ended. All zeros: well.
struct KernelEnd {
  device::Outcome outcome;
  bool wrong = false;  ///< the kernel itself has seen a payload that was not right
};

/// One thread writes `bytes` bytes at a time to a peer, one write outstanding.
struct PutJob {
  device::EndpointView view;
  Ticks clock;
  std::uint32_t peer = 0;
  std::uint32_t bytes = 8;
  std::uint64_t seed = 0;
  std::uint64_t warm_up = 0;  ///< writes that are not recorded, first
  std::uint64_t count = 0;
  Slots target;                    ///< write i brings target_value(seed, i), as far as it fits into `bytes`
  Slots source;                    ///< the kernel writes that value there
  std::uint64_t* issue = nullptr;  ///< [count] ticks
  std::uint64_t* completion = nullptr;  ///< [count] ticks, from before the issue
  KernelEnd* end = nullptr;
};

/// One thread writes a flag of 8 B and waits for the peer's, or waits and answers.
struct FlagJob {
  device::EndpointView view;
  Ticks clock;
  std::uint32_t peer = 0;
  std::uint64_t seed = 0;
  std::uint64_t warm_up = 0;
  std::uint64_t count = 0;
  device::Place flag;  ///< both PEs' own
  Slots source;
  std::uint64_t* round_trip = nullptr;  ///< [count] ticks; unused by the end that answers
  KernelEnd* end = nullptr;
};

/// One thread rings a doorbell that announces nothing new.
struct DoorbellJob {
  device::EndpointView view;
  Ticks clock;
  std::uint32_t peer = 0;
  std::uint64_t count = 0;
  std::uint64_t pause_ticks = 0;   ///< between two, so that the NIC has seen the one before
  std::uint64_t* issue = nullptr;  ///< [count] ticks
};

}  // namespace belfry::bench
