/// \file
/// Whether the device makes the objects that a GPU's queue consists of: DEVX and a doorbell register.

#include <array>

#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

constexpr std::array<Rule, 9> kRules = {{
    {"devx.available", Severity::ok, "DEVX is open: queues can be made in memory of our choice", "", ""},
    {"devx.unavailable", Severity::error, "DEVX is not open",
     "a GPU's queue lies in GPU memory, and only DEVX makes a QP on memory that the caller brings",
     "run with CAP_NET_RAW: `docker run --cap-add NET_RAW`; if that does not help, update mlx5_ib and the "
     "firmware: `mlxfwmanager --query`"},
    {"devx.not_opened", Severity::error, "the device cannot be opened", "", "see the finding of `nodes`"},
    {"devx.no_record", Severity::ok, "QPs without a doorbell record are offered", "", ""},
    {"devx.record_only", Severity::note, "every QP needs a doorbell record",
     "each doorbell costs the GPU one more ordered store; newer firmware of ConnectX-7 and later has a mode "
     "without it",
     ""},
    {"devx.register", Severity::ok, "a doorbell register (UAR) of its own was allocated", "", ""},
    {"devx.register_shared", Severity::warning, "only a doorbell register shared with other queues was given",
     "two writers of one register overwrite each other's doorbells unless the NIC also reads records",
     "close other programs that use this device, and look at who has it: `rdma resource show ctx dev "
     "<device>`"},
    {"devx.no_register", Severity::error, "no doorbell register could be allocated",
     "without one nothing can tell the NIC of work",
     "close other programs that use this device: `rdma resource show ctx dev <device>` names them"},
    {"devx.untried", Severity::unknown, "no device was opened below another root", "", ""},
}};

void look_at(Visit& visit, const RdmaDevice& device) {
  const NicTrial& trial = visit.trials->nic(device.name);
  if (!trial.opened) {
    visit.report(kRules[2], device, trial.problem);
    return;
  }
  if (!trial.devx.available) {
    visit.report(kRules[1], device, trial.devx.reason);
    return;
  }
  visit.report(kRules[0], device, "QUERY_HCA_CAP answers");
  if (trial.devx.no_record) {
    visit.report(kRules[3], device, "send_dbr_mode is offered");
  } else {
    visit.report(kRules[4], device, "send_dbr_mode is not offered");
  }
  if (!trial.register_allocated) {
    visit.report(kRules[7], device, trial.register_problem);
  } else if (!trial.register_dedicated) {
    visit.report(kRules[6], device, "the driver gave the register that all queues of a context share");
  } else {
    visit.report(kRules[5], device, "allocated, mapped and freed again");
  }
}

void check_devx(Visit& visit) {
  for (const RdmaDevice& device : visit.machine.devices) {
    if (!device.mlx5()) continue;
    if (visit.trials == nullptr) {
      visit.report(kRules[8], device, "this needs the device itself");
    } else {
      look_at(visit, device);
    }
  }
}

}  // namespace

extern const Check kDevxCheck{"devx", "DEVX, and the allocation of a doorbell register (UAR)", kRules,
                              check_devx};

}  // namespace belfry::doctor
