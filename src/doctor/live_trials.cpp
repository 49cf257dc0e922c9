/// \file
/// The trials on the live machine.

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "belfry/host/device_list.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/mtu.hpp"
#include "doctor/cuda.hpp"
#include "doctor/loopback.hpp"
#include "doctor/trials.hpp"
#include "host/devx_capabilities.hpp"
#include "host/devx_objects.hpp"

namespace belfry::doctor {
namespace {

constexpr std::size_t kPage = 4096;
/// The granularity in which the driver exports GPU memory.
constexpr std::size_t kGpuBytes = std::size_t{2} << 20;

struct Close {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
  void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
};
using OpenDevice = std::unique_ptr<ibv_context, Close>;

/// With DEVX where the driver has it. \return null, with errno
OpenDevice open_device(ibv_device* device) {
  mlx5dv_context_attr attributes{};
  attributes.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  errno = 0;
  if (mlx5dv_is_supported(device)) {
    if (OpenDevice context{mlx5dv_open_device(device, &attributes)}) return context;
  }
  return OpenDevice(ibv_open_device(device));
}

/// 0, or the errno of a registration of GPU memory through `address`.
int try_pointer(ibv_pd* pd, std::uint64_t address) {
  errno = 0;
  ibv_mr* region = ibv_reg_mr(pd, reinterpret_cast<void*>(address), kGpuBytes,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (region == nullptr) return errno != 0 ? errno : EIO;
  ibv_dereg_mr(region);
  return 0;
}

int try_dma_buf(ibv_pd* pd, std::uint64_t address, int fd) {
  errno = 0;
  ibv_mr* region =
      ibv_reg_dmabuf_mr(pd, 0, kGpuBytes, address, fd,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (region == nullptr) return errno != 0 ? errno : EIO;
  ibv_dereg_mr(region);
  return 0;
}

void try_memory(CudaDriver& cuda, ibv_context* context, GpuNicTrial& pair) {
  const std::unique_ptr<ibv_pd, Close> pd(ibv_alloc_pd(context));
  const CudaDriver::Memory memory(cuda, kGpuBytes);
  if (pd == nullptr || memory.address() == 0) return;
  int fd = -1;
  pair.export_dma_buf = memory.export_dma_buf(fd);
  if (fd >= 0) {
    pair.register_dma_buf = try_dma_buf(pd.get(), memory.address(), fd);
    close(fd);
  }
  pair.register_pointer = try_pointer(pd.get(), memory.address());
}

void try_register(CudaDriver& cuda, ibv_context* context, bool software_nic, GpuNicTrial& pair) {
  try {
    const host::Uar uar(context);
    const auto page = reinterpret_cast<std::uintptr_t>(uar.register_address()) & ~(kPage - 1);
    // The software NIC's page is plain memory, which the driver refuses to map as a device's.
    pair.map_register = cuda.try_map(reinterpret_cast<void*>(page), kPage, !software_nic);
  } catch (const host::Error&) {
    // The check of DEVX says why there is no register.
  }
}

class LiveTrials final : public Trials {
 public:
  int open_node(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return errno;
    close(fd);
    return 0;
  }

  const NicTrial& nic(const std::string& device) override {
    const auto known = nics_.find(device);
    if (known != nics_.end()) return known->second;
    return nics_.emplace(device, try_nic(device)).first->second;
  }

  const GpuTrial& gpu(const std::vector<std::string>& devices) override {
    if (!gpu_) gpu_ = try_gpus(devices);
    return *gpu_;
  }

  GdrCopyTrial gdrcopy() override {
    void* library = dlopen("libgdrapi.so.2", RTLD_NOW);
    if (library == nullptr) return GdrCopyTrial::no_library;
    const auto open_driver = reinterpret_cast<void* (*)()>(dlsym(library, "gdr_open"));
    const auto close_driver = reinterpret_cast<int (*)(void*)>(dlsym(library, "gdr_close"));
    if (open_driver == nullptr || close_driver == nullptr) return GdrCopyTrial::no_library;
    void* driver = open_driver();
    if (driver == nullptr) return GdrCopyTrial::refused;
    close_driver(driver);
    return GdrCopyTrial::works;
  }

  std::vector<Proof> prove(const std::string& device, unsigned port) override {
    Proof failed;
    failed.queue = "no";
    try {
      host::ContextOptions options = host::ContextOptions::from(host::Environment::of_this_process());
      options.nic = device + ":" + std::to_string(port);
      return prove_loopback(host::Context::open(options));
    } catch (const host::Error& error) {
      failed.problem = error.message();
      failed.remedy = error.remedy();
    } catch (const std::exception& error) {
      failed.problem = error.what();
    }
    return {failed};
  }

  std::string choice(const std::string& request) override {
    host::DeviceList list;
    for (std::size_t i = 0; i < list.size(); ++i) list.probe(i);
    return host::choose_device(list.infos(), host::DeviceRequest::parse(request)).reason;
  }

 private:
  /// \return null where the device is not in libibverbs' list
  static ibv_device* find(const host::DeviceList& list, const std::string& name) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].name == name) return list.device(i);
    }
    return nullptr;
  }

  static NicTrial try_nic(const std::string& name) try {
    NicTrial trial;
    const host::DeviceList list;
    ibv_device* device = find(list, name);
    if (device == nullptr) {
      trial.problem =
          "libibverbs does not list it: its provider library may be missing (package "
          "ibverbs-providers), or its node";
      return trial;
    }
    const OpenDevice context = open_device(device);
    if (context == nullptr) {
      trial.problem = host::verbs_error(host::VerbsCall::open_device, errno != 0 ? errno : EIO, name).what();
      return trial;
    }
    trial.opened = true;
    ask_limits(context.get(), trial);
    trial.devx = host::query_devx_capabilities(context.get());
    try_own_register(context.get(), trial);
    return trial;
  } catch (const host::Error& error) {
    NicTrial trial;
    trial.problem = error.what();
    return trial;
  }

  static void ask_limits(ibv_context* context, NicTrial& trial) {
    ibv_device_attr limits{};
    if (ibv_query_device(context, &limits) != 0) return;
    trial.atomics = limits.atomic_cap != IBV_ATOMIC_NONE;
    trial.atomics_global = limits.atomic_cap == IBV_ATOMIC_GLOB;
    for (unsigned port = 1; port <= limits.phys_port_cnt; ++port) {
      ibv_port_attr attributes{};
      if (ibv_query_port(context, static_cast<std::uint8_t>(port), &attributes) != 0) continue;
      trial.path_mtu[port] = host::mtu_bytes(attributes.active_mtu);
    }
  }

  static void try_own_register(ibv_context* context, NicTrial& trial) {
    if (!trial.devx.available) return;
    try {
      const host::Uar uar(context);
      trial.register_allocated = true;
      trial.register_dedicated = uar.dedicated();
    } catch (const host::Error& error) {
      trial.register_problem = error.what();
    }
  }

  static GpuTrial try_gpus(const std::vector<std::string>& devices) {
    GpuTrial trial;
    CudaDriver cuda;
    trial.library = cuda.loaded();
    trial.init = cuda.init();
    trial.driver_version = cuda.version();
    trial.gpus = cuda.gpus();
    if (trial.gpus.empty()) return trial;
    try {
      const host::DeviceList list;
      for (std::size_t i = 0; i < trial.gpus.size(); ++i) {
        if (cuda.enter(static_cast<int>(i)) != 0) continue;
        for (const std::string& name : devices)
          trial.pairs.push_back(try_pair(cuda, list, trial.gpus[i], name));
      }
    } catch (const host::Error&) {
      // Without a list of devices there are no pairs.
    }
    return trial;
  }

  static GpuNicTrial try_pair(CudaDriver& cuda, const host::DeviceList& list, const std::string& gpu,
                              const std::string& name) {
    GpuNicTrial pair;
    pair.gpu = gpu;
    pair.device = name;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].name != name || !list[i].mlx5_driver) continue;
      const OpenDevice context = open_device(list.device(i));
      if (context == nullptr) break;
      try_register(cuda, context.get(), list[i].software_nic, pair);
      try_memory(cuda, context.get(), pair);
    }
    return pair;
  }

  std::map<std::string, NicTrial> nics_;
  std::optional<GpuTrial> gpu_;
};

}  // namespace

std::unique_ptr<Trials> live_trials() { return std::make_unique<LiveTrials>(); }

}  // namespace belfry::doctor
