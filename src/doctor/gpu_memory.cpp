/// \file
/// Whether a NIC can reach GPU memory (peer memory or dma-buf), and whether the CPU can (GDRCopy).

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "doctor/check.hpp"
#include "doctor/cuda.hpp"

namespace belfry::doctor {
namespace {

constexpr std::array<Rule, 11> kMemoryRules = {{
    {"gpu-memory.dma_buf", Severity::ok, "GPU memory was exported as a dma-buf and registered with the NIC",
     "", ""},
    {"gpu-memory.peer_memory", Severity::ok, "a GPU address was registered with the NIC through peer memory",
     "", ""},
    {"gpu-memory.neither", Severity::error, "GPU memory can be registered neither way",
     "queues and payload in GPU memory are out of reach for the NIC",
     "use NVIDIA's open kernel modules on Linux 5.12 or newer (dma-buf), or `modprobe nvidia-peermem` with "
     "DOCA-OFED's or the distribution's patched ib_core"},
    {"gpu-memory.dma_buf_likely", Severity::ok, "driver and kernel are of the kind that has dma-buf export",
     "read, not tried", ""},
    {"gpu-memory.dma_buf_unlikely", Severity::note, "driver or kernel is of the kind without dma-buf export",
     "dma-buf needs NVIDIA's open kernel modules and Linux 5.12; peer memory is the other way", ""},
    {"gpu-memory.registered", Severity::ok, "nvidia-peermem is loaded and known to ib_core", "", ""},
    {"gpu-memory.unregistered", Severity::warning, "nvidia-peermem is loaded, and ib_core does not list it",
     "a module that is loaded is not yet one that works: built against an ib_core without peer memory, or "
     "before the RDMA drivers were changed, it never becomes a client, and ibv_reg_mr fails on GPU addresses",
     "rebuild the NVIDIA driver after the RDMA drivers: `dkms autoinstall --force`, then `modprobe -r "
     "nvidia-peermem && modprobe nvidia-peermem` and `ls /sys/kernel/mm/memory_peers`; or use dma-buf, which "
     "needs no such module"},
    {"gpu-memory.no_peermem", Severity::note, "nvidia-peermem is not loaded",
     "not needed where dma-buf works", "`modprobe nvidia-peermem`"},
    {"gpu-memory.untried", Severity::unknown, "no GPU memory has been registered", "", ""},
    {"gpu-memory.software", Severity::note, "how the software NIC fares with GPU memory",
     "it registers memory in its own way: of a hardware NIC this shows nothing", ""},
    {"gpu-memory.partly", Severity::warning, "one of the two ways fails where the other works",
     "programs that know only the failing way (older NCCL and UCX know only peer memory) do not work here",
     ""},
}};
const Rule& kDmaBuf = kMemoryRules[0];
const Rule& kPeerMemory = kMemoryRules[1];
const Rule& kNeither = kMemoryRules[2];
const Rule& kDmaBufLikely = kMemoryRules[3];
const Rule& kDmaBufUnlikely = kMemoryRules[4];
const Rule& kRegistered = kMemoryRules[5];
const Rule& kUnregistered = kMemoryRules[6];
const Rule& kNoPeermem = kMemoryRules[7];
const Rule& kUntried = kMemoryRules[8];
const Rule& kSoftware = kMemoryRules[9];
const Rule& kPartly = kMemoryRules[10];

/// Linux 5.12 brought ibv_reg_dmabuf_mr's kernel side.
bool kernel_has_dma_buf_regions(const std::string& release) {
  char* rest = nullptr;
  const long major = std::strtol(release.c_str(), &rest, 10);
  const long minor = *rest == '.' ? std::strtol(rest + 1, nullptr, 10) : 0;
  return major > 5 || (major == 5 && minor >= 12);
}

void read_dma_buf(Visit& visit) {
  const std::string version = visit.tree().line("/proc/driver/nvidia/version").value_or("");
  const std::string kernel = visit.tree().line("/proc/sys/kernel/osrelease").value_or("");
  const bool open_modules = version.find("Open Kernel Module") != std::string::npos;
  const std::string found = fmt::format("{} kernel modules, Linux {}", open_modules ? "open" : "proprietary",
                                        kernel.empty() ? "unknown" : kernel);
  visit.report(open_modules && kernel_has_dma_buf_regions(kernel) ? kDmaBufLikely : kDmaBufUnlikely, "driver",
               found);
}

/// The names of sysfs: nv_mem is the client's legacy form, nv_mem_nc its persistent one (nvidia-peermem.c);
/// the older nv_peer_mem registers as nv_mem, too.
void read_peermem(Visit& visit) {
  const Tree& tree = visit.tree();
  const bool loaded = tree.exists("/sys/module/nvidia_peermem") || tree.exists("/sys/module/nv_peer_mem");
  std::string clients;
  for (const std::string& client : tree.list("/sys/kernel/mm/memory_peers")) {
    if (client.starts_with("nv")) clients += (clients.empty() ? "" : ", ") + client;
  }
  if (!loaded) {
    visit.report(kNoPeermem, "nvidia-peermem", "not among the loaded modules");
  } else if (clients.empty()) {
    visit.report(kUnregistered, "nvidia-peermem", "loaded; /sys/kernel/mm/memory_peers does not list it");
  } else {
    visit.report(kRegistered, "nvidia-peermem", "loaded; listed as " + clients);
  }
}

std::string outcome(const GpuNicTrial& pair) {
  std::string text = "dma-buf: ";
  if (!pair.export_dma_buf) {
    text += "not tried";
  } else if (*pair.export_dma_buf != 0) {
    text += "export fails: " + describe_cuda(*pair.export_dma_buf);
  } else if (pair.register_dma_buf && *pair.register_dma_buf != 0) {
    text += std::string("ibv_reg_dmabuf_mr: ") + std::strerror(*pair.register_dma_buf);
  } else {
    text += "works";
  }
  text += "; peer memory: ";
  if (!pair.register_pointer) return text + "not tried";
  return text + (*pair.register_pointer == 0
                     ? "works"
                     : std::string("ibv_reg_mr: ") + std::strerror(*pair.register_pointer));
}

void report_pair(Visit& visit, const RdmaDevice& device, const GpuNicTrial& pair) {
  const bool tried = pair.register_pointer || pair.export_dma_buf;
  const std::string found = pair.gpu + ": " + outcome(pair);
  if (!tried) {
    visit.report(kUntried, device, found);
  } else if (device.software_nic) {
    visit.report(kSoftware, device, found);
  } else if (!pair.memory_works()) {
    visit.report(kNeither, device, found);
  } else {
    if (pair.register_dma_buf == 0) visit.report(kDmaBuf, device, pair.gpu);
    if (pair.register_pointer == 0) visit.report(kPeerMemory, device, pair.gpu);
    if (pair.register_dma_buf != 0 || pair.register_pointer != 0) visit.report(kPartly, device, found);
  }
}

void check_gpu_memory(Visit& visit) {
  if (!visit.tree().exists("/proc/driver/nvidia/version")) return;  // the check of GPUs says so
  read_dma_buf(visit);
  read_peermem(visit);
  if (visit.trials == nullptr) {
    visit.report(kUntried, "GPUs", "this needs the driver itself");
    return;
  }
  std::vector<std::string> names;
  for (const RdmaDevice& device : visit.machine.devices) names.push_back(device.name);
  const GpuTrial& trial = visit.trials->gpu(names);
  for (const RdmaDevice& device : visit.machine.devices) {
    for (const GpuNicTrial& pair : trial.pairs) {
      if (pair.device == device.name) report_pair(visit, device, pair);
    }
  }
}

constexpr std::array<Rule, 6> kGdrcopyRules = {{
    {"gdrcopy.works", Severity::ok, "GDRCopy opens", "", ""},
    {"gdrcopy.absent", Severity::note, "gdrdrv, GDRCopy's kernel module, is not loaded",
     "the CPU then cannot write GPU memory cheaply: a proxy's completions go through the NIC instead",
     "install gdrdrv-dkms and `modprobe gdrdrv`"},
    {"gdrcopy.no_node", Severity::warning, "gdrdrv is loaded, and /dev/gdrdrv is not there",
     "the usual case in a container",
     "`docker run --device /dev/gdrdrv`; on a host: `mknod /dev/gdrdrv c "
     "$(grep gdrdrv /proc/devices | cut -d ' ' -f 1) 0 && chmod 0666 /dev/gdrdrv`"},
    {"gdrcopy.no_library", Severity::note, "gdrdrv is loaded, and libgdrapi.so.2 is not installed", "",
     "install libgdrapi"},
    {"gdrcopy.refused", Severity::warning, "gdrdrv is loaded, and gdr_open() fails",
     "a module that is loaded is not yet one that works: the node's rights, or a library and a module of "
     "different major versions",
     "`ls -l /dev/gdrdrv`; `modinfo gdrdrv | grep ^version`; then reinstall both "
     "from one release"},
    {"gdrcopy.untried", Severity::unknown, "gdrdrv and its node are there; nothing was opened", "", ""},
}};

const Rule& rule_of(GdrCopyTrial trial) {
  switch (trial) {
    case GdrCopyTrial::works:
      return kGdrcopyRules[0];
    case GdrCopyTrial::no_library:
      return kGdrcopyRules[3];
    case GdrCopyTrial::refused:
      break;
  }
  return kGdrcopyRules[4];
}

void check_gdrcopy(Visit& visit) {
  const Tree& tree = visit.tree();
  if (!tree.exists("/proc/driver/nvidia/version")) return;
  const bool loaded = tree.exists("/sys/module/gdrdrv");
  const bool node = tree.exists("/dev/gdrdrv");
  if (!loaded) {
    visit.report(kGdrcopyRules[1], "gdrdrv", "not among the loaded modules");
  } else if (!node) {
    visit.report(kGdrcopyRules[2], "gdrdrv", "loaded, without a node");
  } else if (visit.trials == nullptr) {
    visit.report(kGdrcopyRules[5], "gdrdrv", "this needs the driver itself");
  } else {
    const GdrCopyTrial trial = visit.trials->gdrcopy();
    visit.report(rule_of(trial), "gdrdrv",
                 trial == GdrCopyTrial::works ? "gdr_open() gives a handle" : "tried with libgdrapi.so.2");
  }
}

}  // namespace

extern const Check kGpuMemoryCheck{"gpu-memory",
                                   "whether a NIC can register GPU memory: dma-buf, nvidia-peermem",
                                   kMemoryRules, check_gpu_memory};
extern const Check kGdrcopyCheck{"gdrcopy", "whether the CPU can write GPU memory: GDRCopy", kGdrcopyRules,
                                 check_gdrcopy};

}  // namespace belfry::doctor
