#include "doctor/world.hpp"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>

#include "belfry/host/errors.hpp"

namespace belfry::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLink = "-> ";

void put(std::string& bytes, std::size_t at, std::uint32_t value, unsigned count) {
  for (unsigned i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
}

void add_function(Files& files, const std::string& path, const std::string& vendor, const std::string& device,
                  const std::string& class_code, const std::string& driver) {
  const std::string address = path.substr(path.rfind('/') + 1);
  const std::string base = "/sys/devices/" + path + "/";
  files[base + "vendor"] = vendor;
  files[base + "device"] = device;
  files[base + "class"] = class_code;
  files[base + "numa_node"] = "0";
  files[base + "local_cpulist"] = "0-3";
  files[base + "current_link_speed"] = "32.0 GT/s PCIe";
  files[base + "max_link_speed"] = "32.0 GT/s PCIe";
  files[base + "current_link_width"] = "16";
  files[base + "max_link_width"] = "16";
  files["/sys/bus/pci/devices/" + address] = "-> ../../../devices/" + path;
  if (driver.empty()) return;
  files["/sys/bus/pci/drivers/" + driver + "/module"] = "";
  std::string up;
  for (const char c : "devices/" + path) up += c == '/' ? "../" : "";
  files[base + "driver"] = "-> " + up + "../bus/pci/drivers/" + driver;
}

/// The bridges that a path names, each with a configuration space that lets atomics and peer traffic pass.
void add_bridges(Files& files, const std::string& above) {
  std::size_t at = above.find('/');
  bool root_port = true;
  while (at != std::string::npos) {
    const std::size_t end = above.find('/', at + 1);
    const std::string path = above.substr(0, end);
    if (!files.contains("/sys/devices/" + path + "/config")) {
      add_function(files, path, "0x1000", "0xc030", "0x060400", "");
      files["/sys/devices/" + path + "/config"] =
          root_port ? pci_config(kPciRootPort, kAtomicRouting | kAtomicComplete64, 0, std::uint16_t{0})
                    : pci_config(kPciDownstreamPort, kAtomicRouting, 0, std::uint16_t{0});
    }
    root_port = false;
    at = end;
  }
}

Proof good_proof(const char* queue) {
  Proof proof;
  proof.queue = queue;
  proof.first_ns = 5000;
  proof.median_ns = 2000;
  proof.repeats = 32;
  return proof;
}

}  // namespace

void remove_below(Files& files, const std::string& path) {
  std::erase_if(files,
                [&](const auto& file) { return file.first == path || file.first.starts_with(path + "/"); });
}

FakeRoot::FakeRoot(const Files& files) {
  // Hundreds of small files a test: memory, where there is some, spares a busy disk.
  const fs::path memory = "/dev/shm";
  std::error_code none;
  const fs::path where = fs::is_directory(memory, none) ? memory : fs::temp_directory_path();
  std::string name = (where / "belfry-doctor-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
  for (const auto& [path, content] : files) {
    const fs::path file = path_ / path.substr(1);
    fs::create_directories(file.parent_path());
    if (content.starts_with(kLink)) {
      fs::create_symlink(content.substr(kLink.size()), file);
    } else {
      std::ofstream(file, std::ios::binary) << content;
    }
  }
}

FakeRoot::~FakeRoot() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string pci_config(unsigned type, std::uint32_t capabilities2, std::uint16_t control2,
                       std::optional<std::uint16_t> acs) {
  std::string bytes(4096, '\0');
  put(bytes, 0x34, 0x40, 1);
  // A power management capability comes first: a reader that takes the first for PCIe is wrong.
  put(bytes, 0x40, 0x01, 1);
  put(bytes, 0x41, 0x60, 1);
  put(bytes, 0x60, 0x10, 1);
  put(bytes, 0x62, type << 4 | 2, 2);
  put(bytes, 0x60 + 0x24, capabilities2, 4);
  put(bytes, 0x60 + 0x28, control2, 2);
  // Advanced error reporting first, then ACS.
  put(bytes, 0x100, acs ? 0x14010001 : 0x00010001, 4);
  if (acs) {
    put(bytes, 0x140, 0x0001000d, 4);
    put(bytes, 0x146, *acs, 2);
  }
  return bytes;
}

std::string pci_of(const NicShape& shape) { return "/sys/devices/" + shape.above + "/" + shape.address; }

std::string port_of(const NicShape& shape, unsigned port) {
  return pci_of(shape) + "/infiniband/" + shape.name + "/ports/" + std::to_string(port);
}

void add_nic(Files& files, const NicShape& shape) {
  add_bridges(files, shape.above);
  const std::string pci = shape.above + "/" + shape.address;
  add_function(files, pci, "0x15b3", "0x1021", "0x020000", "mlx5_core");
  const std::string base = "/sys/devices/" + pci;
  files[base + "/config"] = pci_config(0, 0, kAtomicRequester);
  const std::string ib = base + "/infiniband/" + shape.name;
  files[ib + "/fw_ver"] = "28.39.1002";
  files[ib + "/board_id"] = "MT_0000000838";
  files[ib + "/device"] = "-> ../../../" + shape.address;
  files["/sys/class/infiniband/" + shape.name] = "-> ../../devices/" + pci + "/infiniband/" + shape.name;
  const std::string verbs = "/sys/class/infiniband_verbs/" + shape.uverbs;
  files[verbs + "/ibdev"] = shape.name;
  files[verbs + "/abi_version"] = "1";
  files["/sys/class/infiniband_verbs/abi_version"] = "6";
  files["/dev/infiniband/" + shape.uverbs] = "";

  const std::string port = port_of(shape);
  files[port + "/state"] = "4: ACTIVE";
  files[port + "/phys_state"] = "5: LinkUp";
  files[port + "/rate"] = "400 Gb/sec (4X NDR)";
  files[port + "/link_layer"] = "Ethernet";
  const std::string zeros = "0000:0000:0000:0000:0000:ffff:0" + shape.gid_start + ":0001";
  const std::vector<std::pair<std::string, std::string>> gids = {
      {"fe80:0000:0000:0000:0000:00ff:fe00:0001", "IB/RoCE v1"},
      {"fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2"},
      {zeros, "IB/RoCE v1"},
      {zeros, "RoCE v2"},
      {"0000:0000:0000:0000:0000:0000:0000:0000", ""},
  };
  for (std::size_t i = 0; i < gids.size(); ++i) {
    const std::string index = std::to_string(i);
    files[port + "/gids/" + index] = gids[i].first;
    if (gids[i].second.empty()) continue;
    files[port + "/gid_attrs/types/" + index] = gids[i].second;
    files[port + "/gid_attrs/ndevs/" + index] = shape.netdev;
  }
  files["/sys/class/net/" + shape.netdev + "/mtu"] = "9000";
}

void add_gpu(Files& files, const GpuShape& shape) {
  add_bridges(files, shape.above);
  add_function(files, shape.above + "/" + shape.address, "0x10de", "0x2335", "0x030200", "nvidia");
  files["/proc/driver/nvidia/gpus/" + shape.address + "/information"] =
      "Model: \t\t NVIDIA H200\nIRQ:   \t\t 120\n";
}

FakeTrials::FakeTrials() {
  nic_result.opened = true;
  nic_result.devx.available = true;
  nic_result.devx.no_record = true;
  nic_result.register_allocated = true;
  nic_result.register_dedicated = true;
  nic_result.atomics = true;
  nic_result.path_mtu = {{1, 4096}};
  gpu_result.library = true;
  gpu_result.driver_version = 12080;
  gpu_result.gpus = {"0000:04:00.0"};
  gpu_result.pairs.resize(1);
  GpuNicTrial& first = gpu_result.pairs.front();
  first.gpu = "0000:04:00.0";
  first.device = "mlx5_0";
  first.map_register = 0;
  first.export_dma_buf = 0;
  first.register_dma_buf = 0;
  first.register_pointer = 0;
  proofs = {good_proof("verbs"), good_proof("DEVX")};
}

std::string FakeTrials::choice(const std::string& request) {
  if (choice_fails) throw host::no_device_error("there is no RDMA device named " + request);
  return "device mlx5_0 port 1";
}

World::World() {
  add_nic(files, {});
  add_gpu(files, {});
  files["/proc/driver/nvidia/version"] =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n";
  files["/proc/driver/nvidia/params"] =
      "ResmanDebugLevel: 4294967295\nRegistryDwords: \"PeerMappingOverride=1;\"\n";
  files["/dev/nvidiactl"] = "";
  files["/dev/nvidia-uvm"] = "";
  files["/dev/nvidia3"] = "";
  files["/dev/gdrdrv"] = "";
  files["/sys/module/gdrdrv/refcnt"] = "0";
  files["/sys/module/nvidia_peermem/refcnt"] = "0";
  files["/sys/module/mlx5_core/refcnt"] = "0";
  files["/sys/kernel/mm/memory_peers/nv_mem/version"] = "1.0";
  files["/proc/sys/kernel/osrelease"] = "6.8.0-90-generic";
  files["/proc/self/limits"] =
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max processes             500                  500                  processes \n"
      "Max locked memory         unlimited            unlimited            bytes     \n"
      "Max address space         unlimited            unlimited            bytes     \n";
  files["/proc/self/status"] = "Name:\tbelfry\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\n";
  files["/proc/self/uid_map"] = "         0          0 4294967295";
  files["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"] = "performance";
  const std::string idle = "/sys/devices/system/cpu/cpu0/cpuidle/state1/";
  files[idle + "name"] = "C1";
  files[idle + "latency"] = "2";
  files[idle + "disable"] = "0";
}

Diagnosis World::examine() {
  const FakeRoot root(files);
  return doctor::examine(Tree(root.path()), environment, may_try ? &trials : nullptr, options);
}

std::set<std::string> ids_of(const Diagnosis& diagnosis) {
  std::set<std::string> ids;
  for (const Finding& finding : diagnosis.findings) ids.insert(finding.id);
  return ids;
}

}  // namespace belfry::doctor
