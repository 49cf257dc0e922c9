#include "doctor/machine.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "belfry/host/device_list.hpp"

namespace belfry::doctor {
namespace {

constexpr std::string_view kInfiniband = "/sys/class/infiniband/";

struct KnownDevice {
  unsigned id;
  std::string_view name;
};

/// What mlx5 drives: rdma-core providers/mlx5/mlx5.c; for the newest, the kernel's mlx5_core_pci_table.
constexpr std::array<KnownDevice, 24> kKnownDevices = {{
    {0x1011, "Connect-IB"},
    {0x1012, "Connect-IB virtual function"},
    {0x1013, "ConnectX-4"},
    {0x1014, "ConnectX-4 virtual function"},
    {0x1015, "ConnectX-4 Lx"},
    {0x1016, "ConnectX-4 Lx virtual function"},
    {0x1017, "ConnectX-5"},
    {0x1018, "ConnectX-5 virtual function"},
    {0x1019, "ConnectX-5 Ex"},
    {0x101a, "ConnectX-5 Ex virtual function"},
    {0x101b, "ConnectX-6"},
    {0x101c, "ConnectX-6 virtual function"},
    {0x101d, "ConnectX-6 Dx"},
    {0x101e, "ConnectX virtual function"},
    {0x101f, "ConnectX-6 Lx"},
    {0x1021, "ConnectX-7"},
    {0x1023, "ConnectX-8"},
    {0x1025, "ConnectX-9"},
    {0x1027, "ConnectX-10"},
    {0xa2d2, "BlueField's ConnectX-5"},
    {0xa2d3, "BlueField's ConnectX-5 virtual function"},
    {0xa2d6, "BlueField-2's ConnectX-6 Dx"},
    {0xa2dc, "BlueField-3's ConnectX-7"},
    {0xa2df, "BlueField-4's ConnectX-8"},
}};

/// What follows the colon in "4: ACTIVE".
std::string after_colon(const std::string& text) {
  const std::size_t at = text.find(": ");
  return at == std::string::npos ? text : text.substr(at + 2);
}

/// "fe80:0000:...": eight groups of four digits, as the kernel prints them.
bool parse_gid(const std::string& text, host::Gid& gid) {
  return inet_pton(AF_INET6, text.c_str(), gid.data()) == 1;
}

std::vector<host::GidEntry> read_gids(const Tree& tree, const std::string& port, host::LinkLayer link) {
  std::vector<host::GidEntry> gids;
  const auto file = [&](const char* folder, const std::string& slot) {
    return tree.line(std::string(port).append(folder).append(slot));
  };
  for (const std::string& slot : tree.list(port + "/gids")) {
    const auto index = to_number(slot);
    if (!index) continue;
    host::GidEntry entry;
    entry.index = static_cast<int>(*index);
    const auto line = file("/gids/", slot);
    entry.readable = line && parse_gid(*line, entry.gid);
    if (link == host::LinkLayer::ethernet) {
      const std::string type = file("/gid_attrs/types/", slot).value_or("");
      entry.type = type == "RoCE v2" ? host::GidType::roce_v2 : host::GidType::roce_v1;
      entry.netdev = file("/gid_attrs/ndevs/", slot).value_or("");
    }
    gids.push_back(std::move(entry));
  }
  return gids;
}

RdmaPort read_port(const Tree& tree, const std::string& device, const std::string& number) {
  const std::string base = device + "/ports/" + number;
  RdmaPort port;
  port.number = static_cast<unsigned>(to_number(number).value_or(0));
  port.state = after_colon(tree.line(base + "/state").value_or(""));
  port.physical_state = after_colon(tree.line(base + "/phys_state").value_or(""));
  port.rate = tree.line(base + "/rate").value_or("");
  port.gigabits = std::strtod(port.rate.c_str(), nullptr);
  if (const std::size_t open = port.rate.find('('); open != std::string::npos) {
    port.lanes = static_cast<unsigned>(std::strtoul(port.rate.c_str() + open + 1, nullptr, 10));
  }
  const bool ethernet = tree.line(base + "/link_layer").value_or("") == "Ethernet";
  port.link = ethernet ? host::LinkLayer::ethernet : host::LinkLayer::infiniband;
  port.gids = read_gids(tree, base, port.link);
  port.forced_traffic_class = tree.line(device + "/tc/" + number + "/traffic_class").value_or("");
  return port;
}

RdmaDevice read_device(const Tree& tree, const std::string& name) {
  const std::string base = std::string(kInfiniband) + name;
  RdmaDevice device;
  device.name = name;
  device.firmware = tree.line(base + "/fw_ver").value_or("");
  device.board_id = tree.line(base + "/board_id").value_or("");
  device.software_nic = host::is_software_board(device.board_id);
  device.pci = read_pci_function(tree, base + "/device");
  // The software NIC has no driver link: it has no driver.
  if (device.pci && device.software_nic) device.pci->driver = "mlx5_core";
  for (const std::string& uverbs : tree.list("/sys/class/infiniband_verbs")) {
    const std::string folder = "/sys/class/infiniband_verbs/" + uverbs;
    if (tree.line(folder + "/ibdev") != name) continue;
    device.uverbs = uverbs;
    device.uverbs_abi = tree.line(folder + "/abi_version").value_or("");
  }
  for (const std::string& port : tree.list(base + "/ports")) {
    if (to_number(port)) device.ports.push_back(read_port(tree, base, port));
  }
  return device;
}

std::vector<Gpu> read_gpus(const Tree& tree) {
  std::vector<Gpu> gpus;
  for (PciFunction& function : list_pci_functions(tree, kPciNvidia)) {
    if (!function.is_display()) continue;
    const auto information =
        tree.text("/proc/driver/nvidia/gpus/" + function.address + "/information").value_or("");
    gpus.push_back({std::move(function), value_of(information, "Model").value_or("")});
  }
  return gpus;
}

/// A process in a user namespace of its own may look like root; the kernel asks for the rights of the first
/// namespace, whose map is the identity over all ids.
bool in_first_user_namespace(const Tree& tree) {
  const auto map = tree.line("/proc/self/uid_map");
  if (!map) return true;
  std::string packed;
  for (const char c : *map) {
    if (c != ' ' || (!packed.empty() && packed.back() != ' ')) packed += c;
  }
  return packed == "0 0 4294967295";
}

std::uint64_t limit_value(const std::string& text) {
  if (text == "unlimited") return host::LockedMemoryLimit::kUnlimited;
  return std::strtoull(text.c_str(), nullptr, 10);
}

/// "Max locked memory         65536                65536                bytes"
std::optional<host::LockedMemoryLimit> read_locked_memory(const Tree& tree) {
  constexpr std::string_view kLine = "Max locked memory";
  const std::string limits = tree.text("/proc/self/limits").value_or("");
  const std::size_t at = limits.find(kLine);
  if (at == std::string::npos) return std::nullopt;
  std::vector<std::string> words;
  std::string word;
  for (const char c : limits.substr(at + kLine.size(), limits.find('\n', at) - at - kLine.size()) + " ") {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (words.size() < 2) return std::nullopt;
  return host::LockedMemoryLimit{limit_value(words[0]), limit_value(words[1])};
}

ProcessRights read_process(const Tree& tree) {
  // Bit numbers of include/uapi/linux/capability.h.
  constexpr unsigned kIpcLock = 14;
  constexpr unsigned kSysAdmin = 21;
  ProcessRights rights;
  rights.locked_memory = read_locked_memory(tree);
  const std::string status = tree.text("/proc/self/status").value_or("");
  const std::string effective = value_of(status, "CapEff").value_or("0");
  const std::uint64_t capabilities = std::strtoull(effective.c_str(), nullptr, 16);
  if (in_first_user_namespace(tree)) {
    rights.may_exceed_locked_memory = (capabilities >> kIpcLock & 1) != 0;
    rights.administrator = (capabilities >> kSysAdmin & 1) != 0;
  }
  rights.cpus = parse_cpu_list(value_of(status, "Cpus_allowed_list").value_or(""));
  return rights;
}

}  // namespace

std::string_view connectx_name(unsigned device_id) {
  for (const KnownDevice& known : kKnownDevices) {
    if (known.id == device_id) return known.name;
  }
  return {};
}

const RdmaPort* RdmaDevice::first_active_port() const {
  for (const RdmaPort& port : ports) {
    if (port.active()) return &port;
  }
  return nullptr;
}

bool Machine::only_software_nics() const {
  return !devices.empty() && std::all_of(devices.begin(), devices.end(),
                                         [](const RdmaDevice& device) { return device.software_nic; });
}

Machine read_machine(const Tree& tree, const std::vector<std::string>& names) {
  Machine machine{tree, {}, read_gpus(tree), read_process(tree)};
  const std::vector<std::string> present = tree.list(kInfiniband);
  for (const std::string& name : names) {
    if (std::find(present.begin(), present.end(), name) != present.end()) continue;
    std::string there;
    for (const std::string& other : present) there += (there.empty() ? "" : ", ") + other;
    throw host::no_device_error("there is no RDMA device named " + name +
                                " (devices: " + (there.empty() ? "none" : there) + ")");
  }
  for (const std::string& name : present) {
    const bool wanted = names.empty() || std::find(names.begin(), names.end(), name) != names.end();
    if (wanted) machine.devices.push_back(read_device(tree, name));
  }
  return machine;
}

}  // namespace belfry::doctor
