#pragma once
/// \file
/// Every wait of the host library ends at a deadline.

#include <chrono>

namespace belfry::host {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// The deadline that lies `wait` ahead; waits too long for the clock's range end at its last instant.
template <class Rep, class Period>
Deadline deadline_after(std::chrono::duration<Rep, Period> wait) {
  const Deadline now = Clock::now();
  using Seconds = std::chrono::duration<double>;
  if (Seconds(wait) >= Seconds(Deadline::max() - now)) return Deadline::max();
  return now + std::chrono::duration_cast<Clock::duration>(wait);
}

}  // namespace belfry::host
