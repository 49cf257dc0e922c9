#pragma once
/// \file
/// How a kernel tells the host what went wrong. It neither traps nor prints: it notes its first failure, and
/// ends.

#include <cstdint>

#include "belfry/device/status.hpp"
#include "belfry/port/memory.hpp"

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
BELFRY_FN inline bool succeeded(Report* report, Step step, std::uint32_t peer, device::Status status) {
  device::Outcome outcome;
  outcome.status = status;
  return succeeded(report, step, peer, outcome);
}

}  // namespace belfry::examples
