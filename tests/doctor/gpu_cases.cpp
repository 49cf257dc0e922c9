#include <cerrno>

#include "doctor/cases.hpp"

namespace belfry::doctor {
namespace {

void remove_gpu(World& w) {
  remove_below(w.files, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0");
  w.files.erase("/sys/bus/pci/devices/0000:04:00.0");
  w.files.erase("/sys/bus/pci/devices/0000:02:01.0");
  remove_below(w.files, "/proc/driver/nvidia");
}

void set_registry(World& w, const std::string& text) {
  w.files["/proc/driver/nvidia/params"] = "EnableMSI: 1\nRegistryDwords: \"" + text + "\"\nRmMsg: \"\"\n";
}

}  // namespace

std::vector<Case> gpu_cases() {
  return {
      {"NoGpu",
       remove_gpu,
       {"gpu.none"},
       {"gpu.lanes", "doorbell.mapped", "gpu-memory.untried"},
       false,
       {"docker run --gpus all"}},
      {"NoGpuUnderTheSoftwareNic",
       [](World& w) {
         remove_gpu(w);
         w.files[pci_of() + "/infiniband/mlx5_0/board_id"] = "BELFRY00000001";
       },
       {"gpu.lanes"},
       {"gpu.none"},
       true},
      {"DriverNotLoaded",
       [](World& w) { remove_below(w.files, "/proc/driver/nvidia"); },
       {"gpu.no_driver", "gpu.found"},
       {"gpu.cuda"},
       false,
       {"modprobe nvidia"}},
      {"NoGpuNodesInTheContainer",
       [](World& w) {
         w.files.erase("/dev/nvidia3");
         w.files.erase("/dev/nvidia-uvm");
       },
       {"gpu.no_node"},
       {"gpu.cuda"},
       false,
       {"/dev/nvidia-uvm, /dev/nvidia0"}},
      {"NodesOfOtherKindsAreNoGpus",
       [](World& w) {
         w.files.erase("/dev/nvidia3");
         w.files["/dev/nvidia-modeset"] = "";
         w.files["/dev/nvidia-caps/nvidia-cap1"] = "";
       },
       {"gpu.no_node"},
       {},
       false},
      {"NoLibcuda",
       [](World& w) { w.trials.gpu_result = {}; },
       {"gpu.no_libcuda"},
       {"gpu.cuda", "doorbell.mapped"},
       false},
      {"CudaDoesNotStart",
       [](World& w) {
         w.trials.gpu_result.init = 803;
         w.trials.gpu_result.gpus.clear();
         w.trials.gpu_result.pairs.clear();
       },
       {"gpu.cuda_fails"},
       {"gpu.cuda"},
       false,
       {"803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)"}},
      {"CudaSeesNoGpu",
       [](World& w) {
         w.trials.gpu_result.gpus.clear();
         w.trials.gpu_result.pairs.clear();
       },
       {"gpu.cuda_fails", "doorbell.untried"},
       {"gpu.cuda"},
       false,
       {"CUDA_VISIBLE_DEVICES"}},
      // Field case 17: registration fails with 800; CPU-assisted doorbells, with reason and remedy.
      {"DoorbellRefused",
       [](World& w) {
         set_registry(w, "");
         w.trials.pair().map_register = 800;
       },
       {"doorbell.refused", "doorbell.override_unset"},
       {"doorbell.mapped", "doorbell.override_set"},
       true,
       {"800 (CUDA_ERROR_NOT_PERMITTED)", "CPU-assisted", "NVreg_RegistryDwords=\"PeerMappingOverride=1;\""}},
      {"DoorbellMappedByAnAdministrator",
       [](World& w) {
         set_registry(w, "ForceP2P=17");
         w.files["/proc/self/status"] = "CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3\n";
       },
       {"doorbell.mapped", "doorbell.override_unset"},
       {"doorbell.refused"},
       true,
       {"this process is an administrator"}},
      {"RegistryWithSeveralSettings",
       [](World& w) { set_registry(w, "ForceP2P=17;PeerMappingOverride=1"); },
       {"doorbell.override_set"},
       {"doorbell.override_unset"}},
      {"RegistrySetToZero",
       [](World& w) { set_registry(w, "PeerMappingOverride=0;"); },
       {"doorbell.override_unset"},
       {"doorbell.override_set"}},
      {"RegistrySetForSomethingLonger",
       [](World& w) { set_registry(w, "PeerMappingOverride=10;NoPeerMappingOverride=1"); },
       {"doorbell.override_unset"},
       {"doorbell.override_set"}},
      {"ParamsUnreadable",
       [](World& w) { w.files.erase("/proc/driver/nvidia/params"); },
       {"doorbell.override_unreadable"},
       {"doorbell.override_unset"}},
      {"DoorbellNotTried",
       [](World& w) { w.trials.pair().map_register.reset(); },
       {"doorbell.untried"},
       {"doorbell.mapped", "doorbell.refused"}},
      {"GpuMemoryNeitherWay",
       [](World& w) {
         w.trials.pair().export_dma_buf = 801;
         w.trials.pair().register_dma_buf.reset();
         w.trials.pair().register_pointer = EFAULT;
       },
       {"gpu-memory.neither"},
       {"gpu-memory.dma_buf", "gpu-memory.peer_memory", "gpu-memory.partly"},
       false,
       {"export fails: 801 (CUDA_ERROR_NOT_SUPPORTED); peer memory: ibv_reg_mr: Bad address"}},
      {"GpuMemoryByPeerMemoryOnly",
       [](World& w) { w.trials.pair().register_dma_buf = EOPNOTSUPP; },
       {"gpu-memory.peer_memory", "gpu-memory.partly"},
       {"gpu-memory.dma_buf", "gpu-memory.neither"}},
      {"GpuMemoryByDmaBufOnly",
       [](World& w) {
         w.trials.pair().register_pointer = EFAULT;
         remove_below(w.files, "/sys/module/nvidia_peermem");
         remove_below(w.files, "/sys/kernel/mm/memory_peers");
       },
       {"gpu-memory.dma_buf", "gpu-memory.partly", "gpu-memory.no_peermem"},
       {"gpu-memory.peer_memory", "gpu-memory.registered", "gpu-memory.unregistered"}},
      {"PeermemLoadedAndNotRegistered",
       [](World& w) {
         remove_below(w.files, "/sys/kernel/mm/memory_peers");
         w.trials.pair().register_pointer = EFAULT;
       },
       {"gpu-memory.unregistered"},
       {"gpu-memory.registered"},
       true,
       {"modprobe -r nvidia-peermem"}},
      {"PersistentPeermemClientCounts",
       [](World& w) {
         remove_below(w.files, "/sys/kernel/mm/memory_peers/nv_mem");
         w.files["/sys/kernel/mm/memory_peers/nv_mem_nc/version"] = "1.0";
       },
       {"gpu-memory.registered"},
       {"gpu-memory.unregistered"}},
      {"AnotherVendorsPeerClientDoesNotCount",
       [](World& w) {
         remove_below(w.files, "/sys/kernel/mm/memory_peers/nv_mem");
         w.files["/sys/kernel/mm/memory_peers/amdkfd/version"] = "1.0";
       },
       {"gpu-memory.unregistered"},
       {"gpu-memory.registered"}},
      {"ProprietaryModules",
       [](World& w) {
         w.files["/proc/driver/nvidia/version"] =
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n";
       },
       {"gpu-memory.dma_buf_unlikely"},
       {"gpu-memory.dma_buf_likely"},
       true,
       {"535.183.01"}},
      {"OldKernel",
       [](World& w) { w.files["/proc/sys/kernel/osrelease"] = "5.4.0-150-generic"; },
       {"gpu-memory.dma_buf_unlikely"},
       {"gpu-memory.dma_buf_likely"}},
      {"GpuMemoryNotTried",
       [](World& w) {
         GpuNicTrial& pair = w.trials.pair();
         pair.export_dma_buf.reset();
         pair.register_dma_buf.reset();
         pair.register_pointer.reset();
       },
       {"gpu-memory.untried"},
       {"gpu-memory.neither"}},
      {"GdrcopyAbsent",
       [](World& w) { remove_below(w.files, "/sys/module/gdrdrv"); },
       {"gdrcopy.absent"},
       {"gdrcopy.works"}},
      {"GdrcopyWithoutNode",
       [](World& w) { w.files.erase("/dev/gdrdrv"); },
       {"gdrcopy.no_node"},
       {"gdrcopy.works"},
       true,
       {"docker run --device /dev/gdrdrv"}},
      {"GdrcopyWithoutLibrary",
       [](World& w) { w.trials.gdrcopy_result = GdrCopyTrial::no_library; },
       {"gdrcopy.no_library"},
       {"gdrcopy.works"}},
      {"GdrcopyLoadedAndRefused",
       [](World& w) { w.trials.gdrcopy_result = GdrCopyTrial::refused; },
       {"gdrcopy.refused"},
       {"gdrcopy.works"}},
  };
}

}  // namespace belfry::doctor
