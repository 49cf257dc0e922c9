#pragma once
/// \file
/// How a kernel tells the host what went wrong. It neither traps nor prints: it notes its first failure, and
/// ends.

#include <cstdint>

#include "belfry/device/status.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/time.hpp"

namespace belfry::examples {

enum class Step : std::uint32_t { put, wait, signal, wait_signal, flush };

/// Zeroed by the host, one for each launch.
struct Report {
  std::uint32_t failed = 0;  ///< 1 once a thread has taken it
  Step step = Step::put;
  std::uint32_t peer = 0;
  device::Outcome outcome;
};

/// \return whether the step is done; the first one that is not is noted
BELFRY_FN inline bool succeeded(Report* report, Step step, std::uint32_t peer,
                                const device::Outcome& outcome) {
  if (outcome.ok()) return true;
  if (port::exchange<port::Scope::gpu>(&report->failed, 1u) == 0) {
    report->step = step;
    report->peer = peer;
    report->outcome = outcome;
  }
  return false;
}

// [arrived]
/// The end of a wait for a peer's signal. One that does not come may be the answer to what never left: a look
/// at this PE's own queue then says more than the silence.
/// \param look flushes the queue to the peer, without waiting
template <class Look>
BELFRY_FN bool arrived(Report* report, std::uint32_t peer, device::Status status, const Look& look) {
  if (status == device::Status::done) return true;
  const device::Outcome own = look();
  if (own.status == device::Status::completion_error) return succeeded(report, Step::flush, peer, own);
  device::Outcome outcome;
  outcome.status = status;
  return succeeded(report, Step::wait_signal, peer, outcome);
}
// [arrived]
inline constexpr port::Timeout kOneLook{0};

}  // namespace belfry::examples
