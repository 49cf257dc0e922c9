#include "bench/kernel_runner.hpp"

#include <fmt/format.h>

#include "belfry/host/errors.hpp"

namespace belfry::bench {

std::vector<double> to_microseconds(const std::uint64_t* ticks, std::uint64_t count, const Clock& clock) {
  std::vector<double> values;
  values.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) values.push_back(clock.microseconds(ticks[i]));
  return values;
}

void check_end(const KernelEnd& end, const std::string& what) {
  const device::Outcome& outcome = end.outcome;
  if (outcome.ok()) return;
  const std::string message = fmt::format("{} ended with: {}", what, device::status_name(outcome.status));
  if (outcome.status == device::Status::completion_error) {
    throw host::Error(host::ErrorKind::completion,
                      fmt::format("{} (QP {}, WQE {}, syndrome 0x{:02x}, vendor syndrome 0x{:02x})", message,
                                  outcome.fault.qpn, outcome.fault.index,
                                  static_cast<unsigned>(outcome.fault.syndrome), outcome.fault.vendor),
                      "The NIC refused a WQE; the syndrome says why");
  }
  throw host::Error(
      host::ErrorKind::timed_out, message,
      fmt::format("A kernel waits {} s for one event: the NIC or the other end is gone or stuck",
                  kKernelWaitSeconds));
}

}  // namespace belfry::bench
