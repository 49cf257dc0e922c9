#include "common/report.hpp"

#include <fmt/format.h>

#include "belfry/host/errors.hpp"
#include "belfry/wire/syndrome.hpp"
#include "common/program.hpp"

namespace belfry::examples {
namespace {

const char* name_of(Step step) {
  switch (step) {
    case Step::put:
      return "a put to";
    case Step::wait:
      return "waiting for the completion of an operation to";
    case Step::signal:
      return "a signal to";
    case Step::wait_signal:
      return "waiting for a signal of";
    case Step::flush:
      return "flushing the queues to";
  }
  return "a step with";
}

std::string describe(const device::Fault& fault) {
  using Kind = device::Fault::Kind;
  switch (fault.kind) {
    case Kind::none:
      return "";
    case Kind::root:
      return fmt::format(
          ": the WQE at index {} of QP {:#x} failed with {} (syndrome {:#04x}, vendor {:#04x})", fault.index,
          fault.qpn, wire::syndrome_name(fault.syndrome), static_cast<unsigned>(fault.syndrome),
          fault.vendor);
    case Kind::unknown:
      return fmt::format(": a WQE at index {} or later of QP {:#x} failed, and why was overwritten",
                         fault.index, fault.qpn);
    case Kind::worker_lost:
      return fmt::format(": the proxy's worker is gone, at descriptor {}", fault.index);
    case Kind::abandoned:
      return fmt::format(": a thread gave up its turn at index {} of QP {:#x}", fault.index, fault.qpn);
  }
  return "";
}

}  // namespace

void throw_if_failed(const Report& report) {
  if (report.failed == 0) return;
  using Status = device::Status;
  const Status status = report.outcome.status;
  const bool late = status == Status::timed_out || status == Status::queue_full;
  throw host::Error(
      late ? host::ErrorKind::timed_out : host::ErrorKind::completion,
      fmt::format("{} PE {}: {}{}", name_of(report.step), report.peer, device::status_name(status),
                  describe(report.outcome.fault)),
      late ? "If the machine is only slow, raise --timeout; else look at the other PEs' errors" : "");
}

}  // namespace belfry::examples
