/// \file
/// The end of a visit: one WQE from each usable device to itself, with its payload checked.

#include <fmt/format.h>

#include <array>

#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

constexpr std::array<Rule, 6> kRules = {{
    {"proof.passed", Severity::ok, "an RDMA WRITE went from the device to itself, and its payload is right",
     "", ""},
    {"proof.software", Severity::ok, "the same on the software NIC",
     "it shows that the software works; the time is this CPU's, and says nothing about hardware", ""},
    {"proof.failed", Severity::error, "an RDMA WRITE from the device to itself fails", "", "<remedy>"},
    {"proof.wrong_payload", Severity::error,
     "an RDMA WRITE completed without error, and its payload is wrong",
     "nothing that this NIC or the platform's memory path carries can be trusted",
     "look for PCIe and memory errors: `dmesg | grep -i -e aer -e mce -e mlx5`"},
    {"proof.impossible", Severity::skipped, "nothing was posted: another finding says what is in the way", "",
     ""},
    {"proof.untried", Severity::unknown, "nothing was posted below another root", "", ""},
}};

void report_proof(Visit& visit, const RdmaDevice& device, const RdmaPort& port, const Proof& proof) {
  if (proof.wrong_payload) {
    visit.report(kRules[3], device, port, fmt::format("{} queue: {}", proof.queue, proof.problem));
    return;
  }
  if (!proof.problem.empty()) {
    visit.report(kRules[2], device, port, fmt::format("{} queue: {}", proof.queue, proof.problem),
                 {{"remedy", proof.remedy.empty() ? "`dmesg | grep -i mlx5`" : proof.remedy}});
    return;
  }
  const Rule& rule = device.software_nic ? kRules[1] : kRules[0];
  Finding& finding = visit.report(
      rule, device, port,
      fmt::format("{} queue: {} B written and checked, first time {:.2f} us, then {:.2f} us (median of {}){}",
                  proof.queue, kProofBytes, static_cast<double>(proof.first_ns) / 1000,
                  static_cast<double>(proof.median_ns) / 1000, proof.repeats,
                  device.software_nic ? ": software NIC" : ""));
  finding.figures = {{"payload_bytes", kProofBytes},
                     {"first_time_ns", proof.first_ns},
                     {"median_time_ns", proof.median_ns},
                     {"repeats", proof.repeats},
                     {"software_nic", device.software_nic ? 1 : 0}};
}

void prove_device(Visit& visit, const RdmaDevice& device) {
  const RdmaPort* port = device.first_active_port();
  if (port == nullptr) {
    visit.report(kRules[4], device, "no port is active");
    return;
  }
  if (visit.trials == nullptr) {
    visit.report(kRules[5], device, "this needs the device itself");
    return;
  }
  if (!visit.trials->nic(device.name).opened) {
    visit.report(kRules[4], device, "the device cannot be opened");
    return;
  }
  for (const Proof& proof : visit.trials->prove(device.name, port->number))
    report_proof(visit, device, *port, proof);
}

void check_proof(Visit& visit) {
  for (const RdmaDevice& device : visit.machine.devices) prove_device(visit, device);
}

}  // namespace

extern const Check kProofCheck{"proof", "one RDMA WRITE from each device to itself, payload checked", kRules,
                               check_proof};

}  // namespace belfry::doctor
