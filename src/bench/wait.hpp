#pragma once
/// \file
/// Waiting by polling, with an end to it.

#include <sched.h>

#include <chrono>
#include <cstdint>

namespace belfry::bench {

/// How the measuring threads poll.
struct PollPolicy {
  /// Give the core away between polls: set where pollers and the software NIC's threads are more than
  /// there are cores, and a poller would keep the NIC from the very core it waits for.
  bool yields = false;
  std::chrono::seconds limit{10};  ///< the longest wait for one event
};

/// Polls `ready` until it returns true. The system's clock is read once in many polls, so that it does
/// not show in what is measured.
/// \return false if the limit passed first
template <class Ready>
bool wait_until(Ready ready, const PollPolicy& policy) {
  constexpr std::uint32_t kPollsPerYield = 16;
  constexpr std::uint32_t kPollsPerClockRead = 1024;
  using SystemClock = std::chrono::steady_clock;
  SystemClock::time_point end{};
  for (std::uint32_t polls = 1; !ready(); ++polls) {
    if (policy.yields && polls % kPollsPerYield == 0) sched_yield();
    if (polls % kPollsPerClockRead != 0) continue;
    const auto now = SystemClock::now();
    if (end == SystemClock::time_point{}) {
      end = now + policy.limit;
    } else if (now >= end) {
      return false;
    }
  }
  return true;
}

}  // namespace belfry::bench
