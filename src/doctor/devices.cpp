/// \file
/// Which RDMA devices there are, whether their nodes can be opened, and their firmware.

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "belfry/host/errors.hpp"
#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

constexpr std::array<Rule, 8> kDeviceRules = {{
    {"devices.none", Severity::error, "no RDMA device",
     "without a NIC nothing can be sent; every other check of devices finds nothing to look at",
     "load the driver: `modprobe mlx5_ib ib_uverbs`; in a virtual machine pass a NIC through. To run belfry "
     "without one: `belfry doctor --nic soft`"},
    {"devices.mlx5", Severity::ok, "an mlx5 device, by vendor and device id", "", ""},
    {"devices.software", Severity::note, "the software NIC stands in for a device",
     "it executes real WQEs on a CPU thread: what passes here shows that the software works, and nothing "
     "about hardware",
     ""},
    {"devices.foreign", Severity::error, "an RDMA device of another maker, or without the mlx5 driver",
     "GPU-initiated RDMA writes mlx5 WQEs and doorbells; this device understands others",
     "use a ConnectX-4 or newer, or only the verbs path of this device"},
    {"devices.new_id", Severity::note, "an mlx5 device whose PCI device id is newer than belfry",
     "nothing speaks against it; belfry has no name for it", ""},
    {"devices.no_rdma", Severity::warning, "a ConnectX function that offers no RDMA device",
     "the adapter is in the machine, and this process cannot use it: the driver is not bound, bound to "
     "something else (vfio-pci), or loaded without its RDMA half",
     "`modprobe mlx5_ib`; if it is bound to vfio-pci: `echo <pci> > /sys/bus/pci/drivers/vfio-pci/unbind && "
     "echo <pci> > /sys/bus/pci/drivers/mlx5_core/bind`"},
    {"devices.choice", Severity::ok, "the device that belfry takes by itself, and why", "", ""},
    {"devices.no_choice", Severity::warning, "BELFRY_NIC, or the automatic choice, finds no device to use",
     "programs that leave the choice to belfry stop here",
     "set BELFRY_NIC to a device and port that is active"},
}};
const Rule& kNone = kDeviceRules[0];
const Rule& kMlx5 = kDeviceRules[1];
const Rule& kSoftware = kDeviceRules[2];
const Rule& kForeign = kDeviceRules[3];
const Rule& kNewId = kDeviceRules[4];
const Rule& kNoRdma = kDeviceRules[5];
const Rule& kChoice = kDeviceRules[6];
const Rule& kNoChoice = kDeviceRules[7];

std::string describe_ids(const PciFunction& pci) {
  std::string text = fmt::format("{:04x}:{:04x} at {}", pci.vendor, pci.device, pci.address);
  if (pci.virtual_function) text += ", a virtual function";
  return text;
}

void look_at_device(Visit& visit, const RdmaDevice& device) {
  if (!device.mlx5()) {
    std::string what = "not on PCI";
    if (device.pci) {
      what = describe_ids(*device.pci) + ", driver " +
             (device.pci->driver.empty() ? "none" : device.pci->driver);
    }
    visit.report(kForeign, device, what);
    return;
  }
  const std::string_view name = connectx_name(device.pci->device);
  const std::string ids = describe_ids(*device.pci);
  if (device.software_nic) {
    visit.report(kSoftware, device, fmt::format("belfry's software NIC, shown as a {} ({})", name, ids));
  } else if (name.empty()) {
    visit.report(kNewId, device, ids);
  } else {
    visit.report(
        kMlx5, device,
        fmt::format("{} ({}), board {}", name, ids, device.board_id.empty() ? "unknown" : device.board_id));
  }
}

/// Network functions of Mellanox below which there is no RDMA device.
void look_for_idle_functions(Visit& visit) {
  for (const PciFunction& pci : list_pci_functions(visit.tree(), kPciMellanox)) {
    if (!pci.is_network() || !visit.tree().list(pci.path + "/infiniband").empty()) continue;
    visit.report(kNoRdma, pci.address,
                 fmt::format("{} ({:04x}:{:04x}), driver {}", connectx_name(pci.device), pci.vendor,
                             pci.device, pci.driver.empty() ? "none" : pci.driver),
                 {{"pci", pci.address}});
  }
}

void check_devices(Visit& visit) {
  for (const RdmaDevice& device : visit.machine.devices) look_at_device(visit, device);
  look_for_idle_functions(visit);
  if (visit.machine.devices.empty()) {
    visit.report(kNone, "this machine", "/sys/class/infiniband holds no device");
    return;
  }
  if (visit.trials == nullptr) return;
  const std::string& request = visit.environment.nic;
  try {
    visit.report(kChoice, "BELFRY_NIC=" + request, visit.trials->choice(request));
  } catch (const host::Error& error) {
    visit.report(kNoChoice, "BELFRY_NIC=" + request, error.what());
  }
}

constexpr std::array<Rule, 7> kNodeRules = {{
    {"nodes.open", Severity::ok, "the device node can be opened", "", ""},
    {"nodes.no_uverbs", Severity::error, "the kernel offers no user access to the device",
     "programs reach a NIC through /dev/infiniband/uverbsN, which the module ib_uverbs makes",
     "`modprobe ib_uverbs`"},
    {"nodes.missing", Severity::error, "sysfs shows the device, and its node is not there",
     "the usual case in a container: /sys is the host's, /dev is not, so that the device seems to be there "
     "and cannot be used",
     "hand the node in: `docker run --device=/dev/infiniband/<node>` (Kubernetes: the RDMA device plugin); "
     "on "
     "a host: `udevadm trigger --subsystem-match=infiniband_verbs`"},
    {"nodes.denied", Severity::error, "this user may not open the node", "",
     "`chmod 0666 /dev/infiniband/<node>`, for good by the udev rules of rdma-core; or add the user to the "
     "node's group"},
    {"nodes.forbidden", Severity::error, "the node is there, and the container's device cgroup forbids it",
     "a node that was bind-mounted or made by mknod is not yet allowed",
     "start the container with "
     "`--device=/dev/infiniband/<node>` instead of a volume"},
    {"nodes.failed", Severity::error, "opening the node fails for another reason", "",
     "look at the kernel's log: `dmesg | grep -i -e mlx5 -e uverbs`"},
    {"nodes.untried", Severity::unknown, "the node is there; nothing was opened below another root", "", ""},
}};
const Rule& kOpen = kNodeRules[0];
const Rule& kNoUverbs = kNodeRules[1];
const Rule& kMissing = kNodeRules[2];
const Rule& kDenied = kNodeRules[3];
const Rule& kForbidden = kNodeRules[4];
const Rule& kFailed = kNodeRules[5];
const Rule& kUntried = kNodeRules[6];

const Rule& rule_of_open(int code) {
  switch (code) {
    case 0:
      return kOpen;
    case EACCES:
      return kDenied;
    case EPERM:
      return kForbidden;
    case ENOENT:
      return kMissing;
    default:
      return kFailed;
  }
}

void check_nodes(Visit& visit) {
  for (const RdmaDevice& device : visit.machine.devices) {
    if (device.uverbs.empty()) {
      visit.report(kNoUverbs, device, "no entry in /sys/class/infiniband_verbs names it");
      continue;
    }
    const std::string node = "/dev/infiniband/" + device.uverbs;
    const Fills fills = {{"node", device.uverbs}};
    if (!visit.tree().exists(node)) {
      visit.report(kMissing, device, node + " is not there", fills);
    } else if (visit.trials == nullptr) {
      visit.report(kUntried, device, node + " is there", fills);
    } else {
      const int code = visit.trials->open_node(node);
      visit.report(rule_of_open(code), device,
                   code == 0 ? node + " opens" : node + ": " + std::strerror(code), fills);
    }
  }
}

constexpr std::array<Rule, 3> kFirmwareRules = {{
    {"firmware.version", Severity::ok, "the firmware's version", "", ""},
    {"firmware.mixed", Severity::warning, "devices of one kind run different firmware",
     "they may differ in capabilities and in speed, and what one proves does not hold for the other",
     "update the older one: `mlxfwmanager --query`, then `mlxfwmanager -d <pci> -u`"},
    {"firmware.unreadable", Severity::unknown, "the firmware's version cannot be read", "", ""},
}};

void check_firmware(Visit& visit) {
  std::map<unsigned, std::string> newest;
  for (const RdmaDevice& device : visit.machine.devices) {
    if (!device.mlx5() || device.firmware.empty()) continue;
    std::string& best = newest[device.pci->device];
    // Parts are padded by the maker (28.39.1002), so that text compares as numbers do.
    best = std::max(best, device.firmware);
  }
  for (const RdmaDevice& device : visit.machine.devices) {
    if (device.firmware.empty()) {
      visit.report(kFirmwareRules[2], device, "fw_ver is not readable");
    } else if (device.mlx5() && device.firmware != newest[device.pci->device]) {
      visit.report(kFirmwareRules[1], device,
                   device.firmware + "; another device of its kind has " + newest[device.pci->device],
                   {{"pci", device.pci->address}});
    } else {
      visit.report(kFirmwareRules[0], device, device.firmware);
    }
  }
}

}  // namespace

extern const Check kDevicesCheck{"devices", "RDMA devices by vendor and device id, and which one is taken",
                                 kDeviceRules, check_devices};
extern const Check kNodesCheck{"nodes", "/dev/infiniband nodes: there, and openable by this process",
                               kNodeRules, check_nodes};
extern const Check kFirmwareCheck{"firmware", "firmware versions, and whether they agree", kFirmwareRules,
                                  check_firmware};

}  // namespace belfry::doctor
