#include "doctor/cases.hpp"

namespace belfry::doctor {
namespace {

constexpr char kSwitch[] = "pci0000:00/0000:00:01.0/0000:01:00.0/";

std::string gpu_path() { return std::string("/sys/devices/") + kSwitch + "0000:02:01.0/0000:04:00.0"; }

/// The machine anew, with its NIC elsewhere.
void move_nic(World& w, const std::string& above, const std::string& node) {
  remove_below(w.files, "/sys/bus/pci");
  remove_below(w.files, "/sys/class");
  std::erase_if(w.files, [](const auto& file) { return file.first.starts_with("/sys/devices/pci"); });
  NicShape shape;
  shape.above = above;
  add_nic(w.files, shape);
  add_gpu(w.files, {});
  w.files[pci_of(shape) + "/numa_node"] = node;
}

NicShape far_nic() {
  NicShape shape;
  shape.name = "mlx5_1";
  shape.address = "0000:83:00.0";
  shape.above = "pci0000:80/0000:80:01.0";
  shape.uverbs = "uverbs1";
  shape.netdev = "eth1";
  return shape;
}

void set_group(World& w, const std::string& path, const std::string& type) {
  std::string up;
  for (const char c : path.substr(5)) up += c == '/' ? "../" : "";
  w.files[path + "/iommu_group"] = "-> " + up + "../kernel/iommu_groups/17";
  w.files["/sys/kernel/iommu_groups/17/devices/x"] = "";
  if (!type.empty()) w.files["/sys/kernel/iommu_groups/17/type"] = type;
}

void set_idle(World& w, const std::string& latency, const std::string& disabled) {
  const std::string state = "/sys/devices/system/cpu/cpu0/cpuidle/state2/";
  w.files[state + "name"] = "C6";
  w.files[state + "latency"] = latency;
  w.files[state + "disable"] = disabled;
}

std::string bridge(const char* address) { return std::string("/sys/devices/") + kSwitch + address; }

}  // namespace

std::vector<Case> platform_cases() {
  return {
      {"PcieDegradedWidth",
       [](World& w) { w.files[pci_of() + "/current_link_width"] = "8"; },
       {"pcie.degraded", "pcie.full"},
       {},
       true,
       {"32.0 GT/s PCIe x8 of 32.0 GT/s PCIe x16"}},
      {"PcieDegradedSpeed",
       [](World& w) { w.files[pci_of() + "/current_link_speed"] = "16.0 GT/s PCIe"; },
       {"pcie.degraded"}},
      {"AnIdleGpuIsNotDegraded",
       [](World& w) { w.files[gpu_path() + "/current_link_speed"] = "2.5 GT/s PCIe"; },
       {"pcie.full"},
       {"pcie.degraded"}},
      {"PcieUnknown",
       [](World& w) { w.files[pci_of() + "/current_link_speed"] = "Unknown"; },
       {"pcie.unreadable"},
       {"pcie.degraded"}},
      {"SameRootComplexOnly",
       [](World& w) { move_nic(w, "pci0000:00/0000:00:02.0", "0"); },
       {"affinity.host_bridge"},
       {"affinity.switch", "affinity.far"}},
      {"SameNodeOnly",
       [](World& w) { move_nic(w, "pci0000:80/0000:80:01.0", "0"); },
       {"affinity.host_bridge"},
       {"affinity.switch", "affinity.far"},
       true,
       {"same NUMA node 0"}},
      {"AnotherNode",
       [](World& w) { move_nic(w, "pci0000:80/0000:80:01.0", "1"); },
       {"affinity.far"},
       {"affinity.switch", "affinity.host_bridge"},
       true,
       {"NUMA node 1, the GPU is on 0"}},
      {"NodeNotTold",
       [](World& w) { move_nic(w, "pci0000:80/0000:80:01.0", "-1"); },
       {"affinity.unknown"},
       {"affinity.far"}},
      {"TwoGpusOnOneNicWhileAnotherIdles",
       [](World& w) {
         add_nic(w.files, far_nic());
         GpuShape second;
         second.address = "0000:06:00.0";
         second.above = std::string(kSwitch) + "0000:02:02.0";
         add_gpu(w.files, second);
       },
       {"affinity.shared_nic"},
       {},
       true,
       {"nearest to GPUs 0000:04:00.0, 0000:06:00.0; idle: mlx5_1",
        "GPU 0000:04:00.0 with `BELFRY_NIC=mlx5_0`, GPU 0000:06:00.0 with `BELFRY_NIC=mlx5_1`"}},
      {"TwoGpusOnTwoNics",
       [](World& w) {
         add_nic(w.files, far_nic());
         GpuShape second;
         second.address = "0000:84:00.0";
         second.above = "pci0000:80/0000:80:01.0";
         add_gpu(w.files, second);
       },
       {"affinity.switch"},
       {"affinity.shared_nic"}},
      {"CpusPartlyFar",
       [](World& w) { w.files["/proc/self/status"] = "Cpus_allowed_list:\t0-7\n"; },
       {"affinity.cpu_any"},
       {"affinity.cpu_near"},
       true,
       {"4 of the 8 CPUs", "numactl --cpunodebind=0"}},
      {"CpusFar",
       [](World& w) { w.files["/proc/self/status"] = "Cpus_allowed_list:\t8,10-11\n"; },
       {"affinity.cpu_far"},
       {"affinity.cpu_near", "affinity.cpu_any"}},
      {"AcsRedirects",
       [](World& w) {
         w.files[bridge("0000:02:00.0") + "/config"] =
             pci_config(kPciDownstreamPort, kAtomicRouting, 0, 0x1d);
       },
       {"acs.redirects"},
       {"acs.clear"},
       true,
       {"for b in 0000:02:00.0; do setpci"}},
      {"AcsSourceValidationAloneIsHarmless",
       [](World& w) {
         w.files[bridge("0000:02:00.0") + "/config"] =
             pci_config(kPciDownstreamPort, kAtomicRouting, 0, 0x01);
       },
       {"acs.clear"},
       {"acs.redirects"}},
      {"ConfigurationSpaceForRootOnly",
       [](World& w) {
         for (auto& [path, content] : w.files) {
           if (path.ends_with("/config")) content.resize(64);
         }
       },
       {"acs.unreadable", "atomics.unreadable"},
       {"acs.clear", "atomics.pcie_off", "atomics.pcie_blocked"}},
      {"NoBridgesAsInAVirtualMachine",
       [](World& w) {
         std::erase_if(w.files, [](const auto& file) { return file.first.starts_with("/sys/devices/pci"); });
         remove_below(w.files, "/sys/bus/pci");
         remove_below(w.files, "/sys/class");
         NicShape nic;
         nic.above = "pci0000:00";
         add_nic(w.files, nic);
         GpuShape gpu;
         gpu.above = "pci0000:00";
         add_gpu(w.files, gpu);
       },
       {"acs.no_bridges", "affinity.host_bridge"},
       {"acs.clear"}},
      {"IommuPassesThrough",
       [](World& w) { set_group(w, pci_of(), "identity"); },
       {"iommu.passthrough", "iommu.off"},
       {"iommu.translates"}},
      {"IommuTranslates",
       [](World& w) { set_group(w, pci_of(), "DMA-FQ"); },
       {"iommu.translates"},
       {"iommu.passthrough"},
       true,
       {"iommu=pt"}},
      {"IommuUnreadable",
       [](World& w) { set_group(w, pci_of(), ""); },
       {"iommu.unreadable"},
       {"iommu.translates"}},
      {"AtomicsGlobal",
       [](World& w) { w.trials.nic_result.atomics_global = true; },
       {"atomics.global"},
       {"atomics.device"}},
      {"AtomicsNone",
       [](World& w) { w.trials.nic_result.atomics = false; },
       {"atomics.none"},
       {"atomics.device"}},
      {"AtomicsOffInTheNic",
       [](World& w) { w.files[pci_of() + "/config"] = pci_config(0, 0, 0); },
       {"atomics.pcie_off"},
       {"atomics.pcie"}},
      {"AtomicsNotRouted",
       [](World& w) {
         w.files[bridge("0000:02:00.0") + "/config"] = pci_config(kPciDownstreamPort, 0, 0, std::uint16_t{0});
       },
       {"atomics.pcie_blocked"},
       {"atomics.pcie"},
       true,
       {"bridge 0000:02:00.0"}},
      {"AtomicsNotCompletedByTheRoot",
       [](World& w) {
         w.files["/sys/devices/pci0000:00/0000:00:01.0/config"] =
             pci_config(kPciRootPort, kAtomicRouting, 0, std::uint16_t{0});
       },
       {"atomics.pcie_blocked"},
       {"atomics.pcie"}},
      {"AtomicsBlockedOnEgress",
       [](World& w) {
         w.files[bridge("0000:02:00.0") + "/config"] =
             pci_config(kPciDownstreamPort, kAtomicRouting, kAtomicEgressBlocked, std::uint16_t{0});
       },
       {"atomics.pcie_blocked"},
       {"atomics.pcie"}},
      {"Governor",
       [](World& w) { w.files["/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"] = "powersave"; },
       {"power.governor"},
       {"power.performance"},
       true,
       {"1 of 2 CPUs: powersave", "cpupower frequency-set -g performance"}},
      {"NoGovernor",
       [](World& w) { remove_below(w.files, "/sys/devices/system/cpu/cpu0/cpufreq"); },
       {"power.no_governor"},
       {"power.performance"}},
      {"DeepIdleStates",
       [](World& w) { set_idle(w, "133", "0"); },
       {"power.deep"},
       {"power.shallow"},
       true,
       {"C6 (133 us)"}},
      {"DeepIdleStatesDisabled",
       [](World& w) { set_idle(w, "133", "1"); },
       {"power.shallow"},
       {"power.deep"}},
      {"NoIdleStates",
       [](World& w) { remove_below(w.files, "/sys/devices/system/cpu/cpu0/cpuidle"); },
       {"power.no_idle_states"},
       {"power.shallow"}},
      {"AbiUnsupported",
       [](World& w) { w.files["/sys/class/infiniband_verbs/abi_version"] = "7"; },
       {"versions.abi_unsupported"},
       {"versions.abi"},
       false},
      {"KernelUnreadable",
       [](World& w) { w.files.erase("/proc/sys/kernel/osrelease"); },
       {"versions.unreadable"},
       {"versions.kernel"}},
      {"DriverOutOfTree",
       [](World& w) { w.files["/sys/module/mlx5_core/version"] = "24.10-3.2.5"; },
       {"versions.kernel"},
       {},
       true,
       {"mlx5_core 24.10-3.2.5 (out of tree)"}},
  };
}

}  // namespace belfry::doctor
