/// \file
/// What stands between two PCIe devices that talk to each other: ACS, the IOMMU, and atomics.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

std::vector<const RdmaDevice*> hardware_nics(const Machine& machine) {
  std::vector<const RdmaDevice*> nics;
  for (const RdmaDevice& device : machine.devices) {
    if (device.mlx5() && !device.software_nic) nics.push_back(&device);
  }
  return nics;
}

std::string join(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ", ")); }

constexpr std::array<Rule, 4> kAcsRules = {{
    {"acs.clear", Severity::ok, "no bridge above GPUs and NICs redirects peer traffic", "", ""},
    {"acs.redirects", Severity::warning, "bridges redirect peer-to-peer traffic to the root complex (ACS)",
     "what GPU and NIC send each other through a common switch makes a detour through the CPU: a fraction of "
     "the "
     "bandwidth, and hangs on some platforms",
     "on bare metal, until the next boot: `for b in <bridges>; do setpci -s $b ECAP_ACS+0x6.w=0000:000c; "
     "done`, "
     "or switch ACS off in the BIOS; in a virtual machine ask for ATS instead"},
    {"acs.unreadable", Severity::unknown, "the bridges' configuration space cannot be read",
     "the kernel shows only its first 64 B to those who are not root",
     "run `belfry doctor --only acs,atomics` as root"},
    {"acs.no_bridges", Severity::unknown, "no bridges are visible above GPUs and NICs",
     "common in virtual machines: what the host's switches do cannot be told from here",
     "on the host: `lspci -vv | grep -e ACSCtl`"},
}};

/// Bridges that traffic between a GPU and a NIC passes.
std::set<std::string> bridges_of(const Machine& machine) {
  std::set<std::string> bridges;
  const auto add = [&](const PciFunction& pci) { bridges.insert(pci.bridges.begin(), pci.bridges.end()); };
  for (const RdmaDevice* nic : hardware_nics(machine)) add(*nic->pci);
  for (const Gpu& gpu : machine.gpus) add(gpu.pci);
  return bridges;
}

void check_acs(Visit& visit) {
  const Machine& machine = visit.machine;
  if (hardware_nics(machine).empty() || machine.gpus.empty()) return;
  const std::set<std::string> bridges = bridges_of(machine);
  if (bridges.empty()) {
    visit.report(kAcsRules[3], "bridges", "GPUs and NICs hang at the root");
    return;
  }
  std::vector<std::string> redirecting;
  std::size_t unreadable = 0;
  for (const std::string& bridge : bridges) {
    const PciConfig config(visit.tree(), bridge);
    unreadable += config.has_extended() ? 0 : 1;
    const std::uint16_t control = config.acs_control().value_or(0);
    if ((control & (kAcsRequestRedirect | kAcsCompletionRedirect)) != 0) redirecting.push_back(bridge);
  }
  if (!redirecting.empty()) {
    visit.report(kAcsRules[1], "bridges", "redirecting: " + join(redirecting),
                 {{"bridges", fmt::format("{}", fmt::join(redirecting, " "))}});
  }
  if (unreadable > 0) {
    visit.report(kAcsRules[2], "bridges", fmt::format("{} of {} bridges", unreadable, bridges.size()));
  } else if (redirecting.empty()) {
    visit.report(kAcsRules[0], "bridges", fmt::format("{} bridges looked at", bridges.size()));
  }
}

constexpr std::array<Rule, 4> kIommuRules = {{
    {"iommu.off", Severity::ok, "no IOMMU stands in front of the device", "", ""},
    {"iommu.passthrough", Severity::ok, "the IOMMU passes the device's addresses through", "", ""},
    {"iommu.translates", Severity::warning, "the IOMMU translates the device's addresses",
     "peer-to-peer traffic goes through the IOMMU, or faults there: GPUDirect RDMA wants physical addresses "
     "to be "
     "the same for GPU and NIC",
     "boot with `iommu=pt` (Intel: `intel_iommu=on iommu=pt`); `dmesg | grep -i -e DMAR -e AMD-Vi` shows "
     "faults"},
    {"iommu.unreadable", Severity::unknown, "the IOMMU's mode cannot be read", "", "`cat /proc/cmdline`"},
}};

void look_at_iommu(Visit& visit, const std::string& address, const std::string& subject,
                   const std::string& device) {
  const std::string group = visit.tree().resolve(pci_file(address, "iommu_group"));
  Finding* finding = nullptr;
  if (group.empty()) {
    finding = &visit.report(kIommuRules[0], subject, "it is in no IOMMU group");
  } else {
    const std::string type =
        visit.tree()
            .line("/sys/kernel/iommu_groups/" + group.substr(group.rfind('/') + 1) + "/type")
            .value_or("");
    const Rule& rule = kIommuRules[type == "identity" ? 1 : type.starts_with("DMA") ? 2 : 3];
    finding = &visit.report(rule, subject, "group type: " + (type.empty() ? "not readable" : type));
  }
  finding->device = device;
}

void check_iommu(Visit& visit) {
  for (const RdmaDevice* nic : hardware_nics(visit.machine)) {
    look_at_iommu(visit, nic->pci->address, nic->name, nic->name);
  }
  for (const Gpu& gpu : visit.machine.gpus) look_at_iommu(visit, gpu.pci.address, gpu.pci.address, "");
}

constexpr std::array<Rule, 7> kAtomicsRules = {{
    {"atomics.global", Severity::ok, "RDMA atomics are atomic towards the CPU and other devices", "", ""},
    {"atomics.device", Severity::note, "RDMA atomics are atomic among those of this device only",
     "a counter that a kernel or the CPU also changes must not be the target of RDMA atomics: give each its "
     "own "
     "word",
     ""},
    {"atomics.none", Severity::warning, "the device offers no RDMA atomics",
     "fetch-and-add and compare-and-swap, and signals by atomics, do not work on it", "use signals by WRITE"},
    {"atomics.pcie", Severity::ok, "the NIC may send PCIe atomics, and the bridges above route them", "", ""},
    {"atomics.pcie_off", Severity::note, "the NIC is not enabled to send PCIe atomics",
     "RDMA atomics are then a read and a write over PCIe: atomic only among those of this NIC",
     "`mlxconfig -d <pci> set PCI_ATOMIC_MODE=4`, then a cold boot, where the platform routes atomics"},
    {"atomics.pcie_blocked", Severity::note, "a bridge above the NIC does not route PCIe atomics",
     "RDMA atomics are then a read and a write over PCIe: atomic only among those of this NIC", ""},
    {"atomics.unreadable", Severity::unknown, "the NIC's configuration space cannot be read",
     "the kernel shows only its first 64 B to those who are not root",
     "run `belfry doctor --only acs,atomics` as root"},
}};

/// The first bridge that does not route atomics; empty if all do. \return nothing if one is unreadable
std::optional<std::string> blocking_bridge(const Tree& tree, const PciFunction& pci) {
  for (const std::string& bridge : pci.bridges) {
    const auto express = PciConfig(tree, bridge).express();
    if (!express) return std::nullopt;
    const bool is_switch = express->type == kPciUpstreamPort || express->type == kPciDownstreamPort;
    const bool is_root = express->type == kPciRootPort;
    const bool routes = (express->device_capabilities2 & kAtomicRouting) != 0;
    const bool completes = (express->device_capabilities2 & kAtomicComplete64) != 0;
    const bool blocks = is_switch && (express->device_control2 & kAtomicEgressBlocked) != 0;
    if ((is_switch && !routes) || (is_root && !completes) || blocks) return bridge;
  }
  return "";
}

void look_at_pcie_atomics(Visit& visit, const RdmaDevice& device) {
  const Fills fills = {{"pci", device.pci->address}};
  const auto express = PciConfig(visit.tree(), device.pci->address).express();
  const auto blocking = blocking_bridge(visit.tree(), *device.pci);
  if (!express || !blocking) {
    visit.report(kAtomicsRules[6], device, "its PCIe capability, or a bridge's, is not readable");
  } else if (!blocking->empty()) {
    visit.report(kAtomicsRules[5], device, "bridge " + *blocking);
  } else if ((express->device_control2 & kAtomicRequester) == 0) {
    visit.report(kAtomicsRules[4], device, "AtomicOp requester: disabled", fills);
  } else {
    visit.report(kAtomicsRules[3], device, "AtomicOp requester: enabled");
  }
}

void check_atomics(Visit& visit) {
  for (const RdmaDevice& device : visit.machine.devices) {
    if (!device.mlx5()) continue;
    if (!device.software_nic) look_at_pcie_atomics(visit, device);
    if (visit.trials == nullptr) continue;
    const NicTrial& trial = visit.trials->nic(device.name);
    if (!trial.opened) continue;
    if (trial.atomics_global) {
      visit.report(kAtomicsRules[0], device, "atomic_cap: ATOMIC_GLOB");
    } else if (trial.atomics) {
      visit.report(kAtomicsRules[1], device, "atomic_cap: ATOMIC_HCA");
    } else {
      visit.report(kAtomicsRules[2], device, "atomic_cap: NONE");
    }
  }
}

}  // namespace

extern const Check kAcsCheck{"acs", "whether PCIe bridges send peer traffic on a detour", kAcsRules,
                             check_acs};
extern const Check kIommuCheck{"iommu", "whether an IOMMU translates peer traffic", kIommuRules, check_iommu};
extern const Check kAtomicsCheck{"atomics", "RDMA atomics, and PCIe atomics below them", kAtomicsRules,
                                 check_atomics};

}  // namespace belfry::doctor
