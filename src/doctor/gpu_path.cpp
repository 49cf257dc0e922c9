/// \file
/// GPUs, and whether they can write a NIC's doorbell register.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "doctor/check.hpp"
#include "doctor/cuda.hpp"

namespace belfry::doctor {
namespace {

constexpr std::array<Rule, 9> kGpuRules = {{
    {"gpu.found", Severity::ok, "a GPU and its driver", "", ""},
    {"gpu.none", Severity::error, "no NVIDIA GPU", "there is nothing here that could initiate anything",
     "in a container: `docker run --gpus all`; in a virtual machine pass a GPU through"},
    {"gpu.lanes", Severity::note, "no NVIDIA GPU, and no NIC but the software one",
     "device code runs on CPU threads (lanes) here, which shows that it is right and nothing of its speed",
     ""},
    {"gpu.no_driver", Severity::error, "a GPU is on the bus, and the NVIDIA driver is not loaded", "",
     "`modprobe nvidia`; in a container: `docker run --gpus all`"},
    {"gpu.no_node", Severity::error, "the driver is loaded, and its device nodes are not all there",
     "the usual case in a container that was not given the GPUs",
     "`docker run --gpus all`; on a host: "
     "`nvidia-modprobe -u -c 0`"},
    {"gpu.cuda", Severity::ok, "CUDA starts and sees the GPUs", "", ""},
    {"gpu.cuda_fails", Severity::error, "CUDA does not start",
     "the kernel module and libcuda may be of different versions, or the GPU may be lost",
     "compare `cat /proc/driver/nvidia/version` with `nvidia-smi`; `dmesg | grep -i nvrm` tells of lost "
     "GPUs"},
    {"gpu.no_libcuda", Severity::error, "libcuda.so.1 cannot be loaded",
     "it belongs to the driver, not to the toolkit",
     "install the driver's libraries; in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility and "
     "`docker run --gpus all`"},
    {"gpu.untried", Severity::unknown, "CUDA was not started below another root", "", ""},
}};

/// Nodes without which CUDA cannot start; the first GPU's number need not be 0.
std::vector<std::string> missing_nodes(const Tree& tree) {
  std::vector<std::string> missing;
  for (const char* node : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) {
    if (!tree.exists(node)) missing.emplace_back(node);
  }
  const std::vector<std::string> nodes = tree.list("/dev");
  const bool any = std::any_of(nodes.begin(), nodes.end(), [](const std::string& name) {
    return name.starts_with("nvidia") && to_number(name.substr(6)).has_value();
  });
  if (!any) missing.emplace_back("/dev/nvidia0");
  return missing;
}

std::vector<std::string> names_of(const Machine& machine) {
  std::vector<std::string> names;
  for (const RdmaDevice& device : machine.devices) names.push_back(device.name);
  return names;
}

std::string join(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ", ")); }

/// "560.35.03" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  560.35.03  Fri ..."
std::string driver_version(const Tree& tree) {
  const std::string line =
      value_of(tree.text("/proc/driver/nvidia/version").value_or(""), "NVRM version").value_or("");
  std::string word;
  for (const char c : line + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    const bool version =
        word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos;
    if (version) return word;
    word.clear();
  }
  return "unknown";
}

void try_cuda(Visit& visit) {
  if (visit.trials == nullptr) {
    visit.report(kGpuRules[8], "CUDA", "this needs the driver itself");
    return;
  }
  const GpuTrial& trial = visit.trials->gpu(names_of(visit.machine));
  if (!trial.library) {
    visit.report(kGpuRules[7], "CUDA", "libcuda.so.1 is not found");
  } else if (trial.init != 0) {
    visit.report(kGpuRules[6], "CUDA", "cuInit: " + describe_cuda(trial.init));
  } else if (trial.gpus.empty()) {
    visit.report(kGpuRules[6], "CUDA", "it starts and sees no GPU (is CUDA_VISIBLE_DEVICES empty?)");
  } else {
    visit.report(kGpuRules[5], "CUDA",
                 fmt::format("driver API {}.{}, {} GPU(s)", trial.driver_version / 1000,
                             trial.driver_version % 1000 / 10, trial.gpus.size()));
  }
}

void check_gpu(Visit& visit) {
  const Machine& machine = visit.machine;
  const bool driver = visit.tree().exists("/proc/driver/nvidia/version");
  if (machine.gpus.empty() && !driver) {
    if (machine.only_software_nics()) {
      visit.report(kGpuRules[2], "this machine", "no NVIDIA GPU on the PCI bus");
    } else {
      visit.report(kGpuRules[1], "this machine", "no NVIDIA GPU on the PCI bus");
    }
    return;
  }
  for (const Gpu& gpu : machine.gpus) {
    visit.report(kGpuRules[0], gpu.pci.address,
                 fmt::format("{} ({:04x}:{:04x})", gpu.model.empty() ? "GPU" : gpu.model, gpu.pci.vendor,
                             gpu.pci.device));
  }
  if (!driver) {
    visit.report(kGpuRules[3], "driver", "/proc/driver/nvidia/version is not there");
    return;
  }
  visit.report(kGpuRules[0], "driver", "version " + driver_version(visit.tree()));
  const std::vector<std::string> missing = missing_nodes(visit.tree());
  if (!missing.empty()) {
    visit.report(kGpuRules[4], "driver", "not there: " + join(missing));
    return;
  }
  try_cuda(visit);
}

constexpr std::array<Rule, 7> kDoorbellRules = {{
    {"doorbell.mapped", Severity::ok, "GPUs have mapped the NIC's doorbell register: kernels can ring it", "",
     ""},
    {"doorbell.refused", Severity::warning, "the driver does not let a GPU map the doorbell register",
     "the GPU-rung doorbell is not available: belfry falls back to CPU-assisted doorbells, where a host "
     "thread "
     "forwards each one",
     "`echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' > "
     "/etc/modprobe.d/belfry-nvidia.conf`, rebuild the initramfs (`update-initramfs -u` or `dracut -f`) and "
     "reboot; without that, run as root with CAP_SYS_ADMIN (`docker run --privileged`)"},
    {"doorbell.override_set", Severity::ok, "PeerMappingOverride=1 is set in the driver's registry",
     "the setting is in effect; whether the mapping succeeds is another finding", ""},
    {"doorbell.override_unset", Severity::note, "PeerMappingOverride is not set",
     "the driver then lets only an administrator (CAP_SYS_ADMIN) map another device's registers",
     "`echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' > "
     "/etc/modprobe.d/belfry-nvidia.conf`, rebuild the initramfs (`update-initramfs -u` or `dracut -f`) and "
     "reboot"},
    {"doorbell.override_unreadable", Severity::unknown, "/proc/driver/nvidia/params cannot be read", "", ""},
    {"doorbell.untried", Severity::unknown, "no GPU has tried to map a doorbell register", "", ""},
    {"doorbell.software", Severity::note, "GPUs have mapped the software NIC's doorbell page",
     "that page is host memory, which any process may map: of hardware, where the driver may refuse, it "
     "shows "
     "nothing",
     ""},
}};

/// \return whether the registry says that anyone may map; nothing where it cannot be read
std::optional<bool> peer_mapping_override(const Tree& tree) {
  const auto params = tree.text("/proc/driver/nvidia/params");
  if (!params) return std::nullopt;
  std::string set = value_of(*params, "RegistryDwords").value_or("");
  std::replace(set.begin(), set.end(), '"', ';');
  std::erase(set, ' ');
  set = ";" + set + ";";
  for (const char* value : {";PeerMappingOverride=1;", ";PeerMappingOverride=0x1;"}) {
    if (set.find(value) != std::string::npos) return true;
  }
  return false;
}

void check_registry(Visit& visit) {
  const auto override_set = peer_mapping_override(visit.tree());
  if (!override_set) {
    visit.report(kDoorbellRules[4], "driver", "/proc/driver/nvidia/params is not readable");
  } else if (*override_set) {
    visit.report(kDoorbellRules[2], "driver", "RegistryDwords has PeerMappingOverride=1");
  } else {
    visit.report(
        kDoorbellRules[3], "driver",
        visit.machine.process.administrator
            ? "RegistryDwords has no PeerMappingOverride; this process is an administrator, and may map "
              "all the same"
            : "RegistryDwords has no PeerMappingOverride, and this process is no administrator");
  }
}

void report_mappings(Visit& visit, const GpuTrial& trial, const RdmaDevice& device) {
  std::vector<std::string> mapped;
  std::vector<std::string> refused;
  for (const GpuNicTrial& pair : trial.pairs) {
    if (pair.device != device.name || !pair.map_register) continue;
    if (*pair.map_register == 0) {
      mapped.push_back(pair.gpu);
    } else {
      refused.push_back(pair.gpu + ": " + describe_cuda(*pair.map_register));
    }
  }
  if (mapped.empty() && refused.empty()) {
    visit.report(kDoorbellRules[5], device, "no doorbell register, or no GPU context, to try with");
  }
  if (!mapped.empty()) {
    visit.report(device.software_nic ? kDoorbellRules[6] : kDoorbellRules[0], device, "by " + join(mapped));
  }
  if (!refused.empty()) {
    visit.report(kDoorbellRules[1], device,
                 "registering the page with cuMemHostRegister fails: " + join(refused));
  }
}

void check_doorbell(Visit& visit) {
  const Machine& machine = visit.machine;
  if (!visit.tree().exists("/proc/driver/nvidia/version")) return;  // the check of GPUs says so
  check_registry(visit);
  if (machine.devices.empty()) return;
  if (visit.trials == nullptr) {
    visit.report(kDoorbellRules[5], "GPUs", "this needs the driver itself");
    return;
  }
  const GpuTrial& trial = visit.trials->gpu(names_of(machine));
  if (!trial.library || trial.init != 0) return;
  for (const RdmaDevice& device : machine.devices) {
    if (device.mlx5()) report_mappings(visit, trial, device);
  }
}

}  // namespace

extern const Check kGpuCheck{"gpu", "GPUs, their driver and nodes, and whether CUDA starts", kGpuRules,
                             check_gpu};
extern const Check kDoorbellCheck{"doorbell", "whether a GPU can map a NIC's doorbell register (UAR)",
                                  kDoorbellRules, check_doorbell};

}  // namespace belfry::doctor
