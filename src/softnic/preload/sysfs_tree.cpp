#include "softnic/preload/sysfs_tree.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "softnic/identity.hpp"

namespace belfry::softnic::preload {
namespace {

/// A PCI domain that no firmware hands out, so that our bus addresses meet nobody else's.
constexpr char kPciDomain[] = "be1f";
constexpr unsigned kPkeys = 128;

std::string hex_groups(const std::uint8_t* bytes, unsigned count) {
  std::string text;
  char group[8];
  for (unsigned i = 0; i < count; i += 2) {
    std::snprintf(group, sizeof group, "%s%02x%02x", i == 0 ? "" : ":", bytes[i], bytes[i + 1]);
    text += group;
  }
  return text;
}

std::string guid_text(std::uint64_t guid) {
  std::uint8_t bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(guid >> (56 - 8 * i));
  return hex_groups(bytes, 8);
}

std::string mac_text(const std::array<std::uint8_t, 6>& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                mac[5]);
  return text;
}

std::string hex(unsigned value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

/// Every CPU is as near as any other: groups of 32 bits, the highest first, as the kernel prints masks.
std::string all_cpus_mask() {
  const long configured = sysconf(_SC_NPROCESSORS_CONF);
  const unsigned count = configured < 1 ? 1 : static_cast<unsigned>(configured);
  const unsigned groups = (count + 31) / 32;
  const unsigned highest = count % 32 == 0 ? 0xffffffffu : (1u << count % 32) - 1;
  char group[16];
  std::snprintf(group, sizeof group, "%x", highest);
  std::string text = group;
  for (unsigned i = 1; i < groups; ++i) text += ",ffffffff";
  return text;
}

std::string all_cpus_list() {
  const long configured = sysconf(_SC_NPROCESSORS_CONF);
  return configured > 1 ? "0-" + std::to_string(configured - 1) : "0";
}

/// Adds the files of one device below a common directory. Each value gets the newline that sysfs ends it
/// with.
class Directory {
 public:
  Directory(Tree& tree, std::string path, unsigned real) : tree_(tree), path_(std::move(path)), real_(real) {}

  void file(const std::string& name, const std::string& value) const {
    tree_.add(path_ + "/" + name, real_, NodeKind::file, value + "\n");
  }
  void unreadable(const std::string& name) const {
    tree_.add(path_ + "/" + name, real_, NodeKind::unreadable);
  }
  void link(const std::string& name, const std::string& target) const {
    tree_.add(path_ + "/" + name, real_, NodeKind::link, target);
  }
  Directory below(const std::string& name) const { return {tree_, path_ + "/" + name, real_}; }

 private:
  Tree& tree_;
  std::string path_;
  unsigned real_;
};

void add_pci_function(const Directory& pci, const DeviceIdentity& device, const std::string& address) {
  const std::string sub_class = device.link == LinkLayer::ethernet ? "00" : "07";
  pci.file("vendor", "0x15b3");
  pci.file("device", "0x1021");
  pci.file("subsystem_vendor", "0x15b3");
  pci.file("subsystem_device", "0x0000");
  pci.file("revision", "0x00");
  pci.file("class", "0x02" + sub_class + "00");
  pci.file("modalias", "pci:v000015B3d00001021sv000015B3sd00000000bc02sc" + sub_class + "i00");
  pci.file("numa_node", "-1");
  pci.file("local_cpus", all_cpus_mask());
  pci.file("local_cpulist", all_cpus_list());
  pci.file("enable", "1");
  pci.file("irq", "0");
  pci.file("max_link_speed", "32.0 GT/s PCIe");
  pci.file("max_link_width", "16");
  pci.file("current_link_speed", "32.0 GT/s PCIe");
  pci.file("current_link_width", "16");
  pci.file("uevent", "DRIVER=mlx5_core\nPCI_ID=15B3:1021\nPCI_SUBSYS_ID=15B3:0000\nPCI_SLOT_NAME=" + address);
}

/// An entry without a GID shows zeros, and its attributes cannot be read; nor can the netdev of an
/// InfiniBand port, which has none.
void add_gids(const Directory& port, const DeviceIdentity& device) {
  for (std::size_t i = 0; i < device.gids.size(); ++i) {
    const std::string name = std::to_string(i);
    const GidEntry& entry = device.gids[i];
    const bool filled = entry.gid != Gid{};
    port.file("gids/" + name, hex_groups(entry.gid.data(), 16));
    if (filled) {
      port.file("gid_attrs/types/" + name, entry.type == GidType::roce_v2 ? "RoCE v2" : "IB/RoCE v1");
    } else {
      port.unreadable("gid_attrs/types/" + name);
    }
    if (filled && device.link == LinkLayer::ethernet) {
      port.file("gid_attrs/ndevs/" + name, device.netdev);
    } else {
      port.unreadable("gid_attrs/ndevs/" + name);
    }
  }
}

void add_counters(const Directory& port) {
  for (const char* name : {"VL15_dropped",
                           "excessive_buffer_overrun_errors",
                           "link_downed",
                           "link_error_recovery",
                           "local_link_integrity_errors",
                           "multicast_rcv_packets",
                           "multicast_xmit_packets",
                           "port_rcv_constraint_errors",
                           "port_rcv_data",
                           "port_rcv_errors",
                           "port_rcv_packets",
                           "port_rcv_remote_physical_errors",
                           "port_rcv_switch_relay_errors",
                           "port_xmit_constraint_errors",
                           "port_xmit_data",
                           "port_xmit_discards",
                           "port_xmit_packets",
                           "port_xmit_wait",
                           "symbol_error",
                           "unicast_rcv_packets",
                           "unicast_xmit_packets"}) {
    port.file(std::string("counters/") + name, "0");
  }
}

void add_port(const Directory& port, const DeviceIdentity& device) {
  const bool ethernet = device.link == LinkLayer::ethernet;
  port.file("state", "4: ACTIVE");
  port.file("phys_state", "5: LinkUp");
  port.file("rate", "400 Gb/sec (4X NDR)");
  port.file("link_layer", ethernet ? "Ethernet" : "InfiniBand");
  port.file("lid", hex(device.lid));
  port.file("lid_mask_count", "0");
  port.file("sm_lid", hex(ethernet ? 0 : 1));
  port.file("sm_sl", "0");
  port.file("cap_mask", ethernet ? "0x04010000" : "0x00014800");
  port.file("has_smi", "0");
  add_gids(port, device);
  for (unsigned i = 0; i < (ethernet ? 1 : kPkeys); ++i) {
    port.file("pkeys/" + std::to_string(i), i == 0 ? "0xffff" : "0x0000");
  }
  add_counters(port);
}

void add_ib_device(const Directory& ib, const DeviceIdentity& device, const std::string& address,
                   unsigned node) {
  ib.file("node_type", "1: CA");
  ib.file("node_guid", guid_text(device.guid));
  ib.file("sys_image_guid", guid_text(device.guid));
  ib.file("node_desc", "belfry node " + std::to_string(node) + " " + device.name);
  ib.file("fw_ver", kFirmwareVersion);
  ib.file("hw_rev", "0");
  ib.file("hca_type", "MT4129");
  ib.file("board_id", kBoardId);
  ib.file("uevent", "NAME=" + device.name);
  ib.link("device", "../../../" + address);
  ib.link("subsystem", "../../../../../class/infiniband");
  add_port(ib.below("ports/1"), device);
}

void add_uverbs(const Directory& uverbs, const DeviceIdentity& device, const std::string& number,
                const std::string& address) {
  uverbs.file("ibdev", device.name);
  uverbs.file("dev", number);
  uverbs.file("abi_version", "1");
  uverbs.file("uevent", "MAJOR=231\nMINOR=" + std::to_string(kUverbsFirstMinor + device.index) +
                            "\nDEVNAME=infiniband/uverbs" + std::to_string(device.index) + "\nDEVMODE=0666");
  uverbs.link("device", "../../../" + address);
  uverbs.link("subsystem", "../../../../../class/infiniband_verbs");
}

void add_netdev(const Directory& net, const DeviceIdentity& device, const std::string& address) {
  net.file("address", mac_text(device.mac));
  net.file("addr_len", "6");
  net.file("broadcast", "ff:ff:ff:ff:ff:ff");
  net.file("mtu", std::to_string(device.netdev_mtu));
  net.file("type", "1");
  net.file("flags", "0x1003");
  net.file("operstate", "up");
  net.file("carrier", "1");
  net.file("speed", "400000");
  net.file("duplex", "full");
  net.file("dev_id", "0x0");
  net.file("dev_port", "0");
  net.file("tx_queue_len", "1000");
  net.file("uevent", "INTERFACE=" + device.netdev);
  net.link("device", "../../../" + address);
}

void add_device(Tree& tree, const Config& config, unsigned index) {
  const DeviceIdentity device = identify(config, index);
  char slot[16];
  std::snprintf(slot, sizeof slot, ":00:%02x.0", index & 0x1f);
  const std::string address = kPciDomain + std::string(slot);
  const std::string below_sys = "devices/pci" + std::string(kPciDomain) + ":00/" + address;
  const std::string uverbs = "uverbs" + std::to_string(index);
  const std::string number = "231:" + std::to_string(kUverbsFirstMinor + index);

  const Directory pci(tree, "/sys/" + below_sys, 2);
  add_pci_function(pci, device, address);
  add_ib_device(pci.below("infiniband/" + device.name), device, address, config.node);
  add_uverbs(pci.below("infiniband_verbs/" + uverbs), device, number, address);
  tree.add("/sys/bus/pci/devices/" + address, 4, NodeKind::link, "../../../" + below_sys);
  tree.add("/sys/class/infiniband/" + device.name, 2, NodeKind::link,
           "../../" + below_sys + "/infiniband/" + device.name);
  tree.add("/sys/class/infiniband_verbs/" + uverbs, 2, NodeKind::link,
           "../../" + below_sys + "/infiniband_verbs/" + uverbs);
  tree.add("/sys/dev/char/" + number, 3, NodeKind::link,
           "../../" + below_sys + "/infiniband_verbs/" + uverbs);
  if (device.link == LinkLayer::ethernet) {
    add_netdev(pci.below("net/" + device.netdev), device, address);
    tree.add("/sys/class/net/" + device.netdev, 3, NodeKind::link,
             "../../" + below_sys + "/net/" + device.netdev);
  }
  tree.add("/dev/infiniband/" + uverbs, 1, NodeKind::device).device = index;
  tree.add("/dev/char/" + number, 2, NodeKind::link, "../infiniband/" + uverbs);
}

}  // namespace

std::unique_ptr<Tree> build_tree(const Config& config) try {
  auto tree = std::make_unique<Tree>();
  tree->add("/sys/class/infiniband", 2, NodeKind::directory);
  tree->add("/sys/class/infiniband_verbs/abi_version", 2, NodeKind::file, "6\n");
  tree->add("/dev/infiniband", 1, NodeKind::directory);
  for (unsigned index = 0; index < config.devices; ++index) add_device(*tree, config, index);
  return tree;
} catch (const std::bad_alloc&) {
  return nullptr;
}

bool may_be_ours(const char* path) {
  if (path == nullptr) return false;
  if (*path == '/') {
    const char* first = path + std::strspn(path, "/");
    if (std::strncmp(first, "sys/", 4) != 0 && std::strncmp(first, "dev/", 4) != 0) return false;
  }
  // What every path of the tree has in it, whichever way it is written.
  for (const char* mark : {"infiniband", "belfry", "231:", "be1f:"}) {
    if (std::strstr(path, mark) != nullptr) return true;
  }
  return false;
}

}  // namespace belfry::softnic::preload
