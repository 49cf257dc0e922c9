#include <cerrno>

#include "doctor/cases.hpp"

namespace belfry::doctor {
namespace {

std::string ib_of(const NicShape& shape = {}) { return pci_of(shape) + "/infiniband/" + shape.name; }

NicShape second_nic() {
  NicShape shape;
  shape.name = "mlx5_1";
  shape.address = "0000:05:00.0";
  shape.above = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0";
  shape.uverbs = "uverbs1";
  shape.netdev = "eth1";
  shape.gid_start = "a01";
  return shape;
}

void set_limit(World& w, const std::string& soft, const std::string& capabilities = "0000000000000000") {
  w.files["/proc/self/limits"] =
      "Max locked memory         " + soft + "                unlimited            bytes\n";
  w.files["/proc/self/status"] = "CapEff:\t" + capabilities + "\nCpus_allowed_list:\t0-3\n";
}

void make_software(World& w) {
  w.files[ib_of() + "/board_id"] = "BELFRY00000001";
  w.files.erase(pci_of() + "/driver");
}

constexpr char kIpcLock[] = "0000000000004000";

}  // namespace

std::vector<Case> device_cases() {
  return {
      {"Healthy",
       [](World&) {},
       {"devices.mlx5",
        "devices.choice",
        "nodes.open",
        "firmware.version",
        "ports.active",
        "mtu.full",
        "gid.chosen",
        "traffic-class.default",
        "traffic-class.priorities",
        "memlock.unlimited",
        "devx.available",
        "devx.no_record",
        "devx.register",
        "gpu.found",
        "gpu.cuda",
        "doorbell.override_set",
        "doorbell.mapped",
        "gpu-memory.dma_buf",
        "gpu-memory.peer_memory",
        "gpu-memory.dma_buf_likely",
        "gpu-memory.registered",
        "gdrcopy.works",
        "pcie.full",
        "affinity.switch",
        "affinity.cpu_near",
        "acs.clear",
        "iommu.off",
        "atomics.device",
        "atomics.pcie",
        "power.performance",
        "power.shallow",
        "versions.kernel",
        "versions.abi",
        "proof.passed"},
       {"devices.none", "devices.no_rdma", "gpu-memory.partly", "affinity.shared_nic"},
       true,
       {"GID index 3", "570.86.15", "ConnectX-7", "mlx5_core of the kernel"}},
      {"NoDevice",
       [](World& w) {
         remove_below(w.files, "/sys/class/infiniband");
         remove_below(w.files, pci_of());
         w.files.erase("/sys/bus/pci/devices/0000:03:00.0");
       },
       {"devices.none"},
       {"devices.no_rdma", "devices.choice"},
       false,
       {"modprobe mlx5_ib"}},
      {"NamesSayNothing",
       [](World& w) {
         remove_below(w.files, "/sys");
         NicShape shape;
         shape.name = "ibp3s0";
         add_nic(w.files, shape);
       },
       {"devices.mlx5"},
       {"devices.foreign"}},
      {"ForeignDeviceWithAnMlx5Name",
       [](World& w) { w.files[pci_of() + "/vendor"] = "0x8086"; },
       {"devices.foreign"},
       {"devices.mlx5", "devx.available"},
       false},
      {"ForeignDeviceBesideAGoodOne",
       [](World& w) {
         NicShape shape = second_nic();
         add_nic(w.files, shape);
         w.files[pci_of(shape) + "/vendor"] = "0x14e4";
       },
       {"devices.foreign", "devices.mlx5"},
       {},
       true},
      {"NewerThanBelfry",
       [](World& w) { w.files[pci_of() + "/device"] = "0x10ff"; },
       {"devices.new_id"},
       {"devices.mlx5", "devices.foreign"}},
      {"SubfunctionCountsAsItsFunction",
       [](World& w) {
         w.files[pci_of() + "/mlx5_core.sf.2/uevent"] = "";
         w.files[ib_of() + "/device"] = "-> ../../mlx5_core.sf.2";
       },
       {"devices.mlx5"},
       {"devices.foreign"}},
      {"FunctionWithoutRdma",
       [](World& w) {
         NicShape shape = second_nic();
         Files only;
         add_nic(only, shape);
         remove_below(only, ib_of(shape));
         for (const auto& [path, content] : only) {
           if (path.starts_with("/sys/devices") || path.starts_with("/sys/bus"))
             w.files.emplace(path, content);
         }
       },
       {"devices.no_rdma", "devices.mlx5"},
       {},
       true,
       {"echo 0000:05:00.0 > /sys/bus/pci/drivers/mlx5_core/bind"}},
      {"SoftwareNicIsNamed",
       make_software,
       {"devices.software", "proof.software", "doorbell.software", "gpu-memory.software"},
       {"devices.mlx5", "proof.passed", "doorbell.mapped", "pcie.unreadable"},
       true,
       {"software NIC"}},
      {"NoChoice",
       [](World& w) {
         w.environment.nic = "mlx5_9";
         w.trials.choice_fails = true;
       },
       {"devices.no_choice"},
       {"devices.choice"},
       true,
       {"mlx5_9"}},
      {"NoUverbs",
       [](World& w) { remove_below(w.files, "/sys/class/infiniband_verbs/uverbs0"); },
       {"nodes.no_uverbs"},
       {"nodes.open"},
       false},
      {"NodeMissingAsInAContainer",
       [](World& w) { w.files.erase("/dev/infiniband/uverbs0"); },
       {"nodes.missing"},
       {"nodes.open"},
       false,
       {"docker run --device=/dev/infiniband/uverbs0"}},
      {"ContainerWithOneOfTwoDevices",
       [](World& w) {
         add_nic(w.files, second_nic());
         w.files.erase("/dev/infiniband/uverbs1");
       },
       {"nodes.missing", "nodes.open"},
       {},
       true},
      {"ContainerWithoutTheDeviceThatWasNamed",
       [](World& w) {
         add_nic(w.files, second_nic());
         w.files.erase("/dev/infiniband/uverbs1");
         w.options.devices = {"mlx5_0", "mlx5_1"};
       },
       {"nodes.missing", "nodes.open"},
       {},
       false},
      {"NodeDenied",
       [](World& w) { w.trials.open_result = EACCES; },
       {"nodes.denied"},
       {"nodes.forbidden"},
       false},
      {"NodeForbiddenByTheCgroup",
       [](World& w) { w.trials.open_result = EPERM; },
       {"nodes.forbidden"},
       {"nodes.denied"},
       false},
      {"NodeGoneAtOpening", [](World& w) { w.trials.open_result = ENOENT; }, {"nodes.missing"}, {}, false},
      {"NodeFails", [](World& w) { w.trials.open_result = EIO; }, {"nodes.failed"}, {}, false},
      {"NothingTriedBelowAnotherRoot",
       [](World& w) { w.may_try = false; },
       {"nodes.untried", "devx.untried", "gpu.untried", "doorbell.untried", "gpu-memory.untried",
        "gdrcopy.untried", "proof.untried"},
       {"nodes.open", "proof.passed", "devices.choice"}},
      {"MixedFirmware",
       [](World& w) {
         NicShape shape = second_nic();
         add_nic(w.files, shape);
         w.files[ib_of(shape) + "/fw_ver"] = "28.37.1014";
       },
       {"firmware.mixed", "firmware.version"},
       {},
       true,
       {"another device of its kind has 28.39.1002", "mlxfwmanager -d 0000:05:00.0 -u"}},
      {"FirmwareUnreadable",
       [](World& w) { w.files.erase(ib_of() + "/fw_ver"); },
       {"firmware.unreadable"},
       {"firmware.version"}},
      {"LockedMemoryTooLow",
       [](World& w) { set_limit(w, "65536"); },
       {"memlock.too_low"},
       {"memlock.low", "memlock.bypassed"},
       false,
       {"RLIMIT_MEMLOCK is 64 KiB", "ulimit -l unlimited", "LimitMEMLOCK=infinity"}},
      {"LockedMemoryLow",
       [](World& w) { set_limit(w, "8388608"); },
       {"memlock.low"},
       {"memlock.too_low"},
       true,
       {"8 MiB"}},
      {"LockedMemoryLowForRoot",
       [](World& w) { set_limit(w, "65536", kIpcLock); },
       {"memlock.bypassed"},
       {"memlock.too_low"}},
      {"LockedMemoryLowForRootOfAContainer",
       [](World& w) {
         set_limit(w, "65536", kIpcLock);
         w.files["/proc/self/uid_map"] = "         0     100000      65536";
       },
       {"memlock.too_low"},
       {"memlock.bypassed"},
       false},
      {"LockedMemoryUnreadable",
       [](World& w) { w.files.erase("/proc/self/limits"); },
       {"memlock.unreadable"},
       {"memlock.unlimited"}},
      {"DevxUnavailable",
       [](World& w) {
         w.trials.nic_result.devx.available = false;
         w.trials.nic_result.devx.reason = "mlx5_ib too old";
       },
       {"devx.unavailable"},
       {"devx.available", "devx.register"},
       false,
       {"mlx5_ib too old", "--cap-add NET_RAW"}},
      {"DeviceDoesNotOpen",
       [](World& w) {
         w.trials.nic_result = {};
         w.trials.nic_result.problem = "ibv_open_device failed";
       },
       {"devx.not_opened", "proof.impossible"},
       {"devx.available", "proof.passed", "atomics.none"},
       false},
      {"RecordOnly",
       [](World& w) { w.trials.nic_result.devx.no_record = false; },
       {"devx.record_only"},
       {"devx.no_record"}},
      {"SharedRegister",
       [](World& w) { w.trials.nic_result.register_dedicated = false; },
       {"devx.register_shared"},
       {"devx.register"}},
      {"NoRegister",
       [](World& w) {
         w.trials.nic_result.register_allocated = false;
         w.trials.nic_result.register_problem = "mlx5dv_devx_alloc_uar failed";
       },
       {"devx.no_register"},
       {"devx.register"},
       false,
       {"mlx5dv_devx_alloc_uar failed"}},
      {"ProofFails",
       [](World& w) {
         w.trials.proofs[1].problem = "no completion within 5 s of the doorbell";
         w.trials.proofs[1].remedy = "look at dmesg";
       },
       {"proof.failed", "proof.passed"},
       {},
       false,
       {"DEVX queue: no completion within 5 s", "look at dmesg"}},
      {"ProofWithWrongPayload",
       [](World& w) {
         w.trials.proofs[0].problem = "round 0 completed, and the target is not what was sent";
         w.trials.proofs[0].wrong_payload = true;
       },
       {"proof.wrong_payload"},
       {"proof.failed"},
       false},
      {"LeftOut",
       [](World& w) {
         w.options.skip = {"proof", "power"};
       },
       {"doctor.left_out"},
       {"proof.passed", "power.performance"}},
      {"OnlyWhatWasAskedFor",
       [](World& w) { w.options.only = {"gid"}; },
       {"gid.chosen", "doctor.left_out"},
       {"mtu.full", "proof.passed"}},
  };
}

}  // namespace belfry::doctor
