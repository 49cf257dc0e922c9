#include "doctor/cases.hpp"

namespace belfry::doctor {
namespace {

constexpr char kEmptyGid[] = "0000:0000:0000:0000:0000:0000:0000:0000";

void set_mtu(World& w, const std::string& mtu) { w.files["/sys/class/net/eth0/mtu"] = mtu; }

void make_infiniband(World& w) {
  const std::string port = port_of();
  remove_below(w.files, port + "/gids");
  remove_below(w.files, port + "/gid_attrs");
  w.files[port + "/link_layer"] = "InfiniBand";
  w.files[port + "/gids/0"] = "fe80:0000:0000:0000:0002:c903:00a1:b2c3";
}

/// A second port without a link.
void add_dark_port(World& w) {
  const std::string port = port_of({}, 2);
  w.files[port + "/state"] = "1: DOWN";
  w.files[port + "/phys_state"] = "3: Disabled";
  w.files[port + "/rate"] = "10 Gb/sec (4X SDR)";
  w.files[port + "/link_layer"] = "InfiniBand";
}

void add_slow_nic(World& w) {
  NicShape shape;
  shape.name = "mlx5_1";
  shape.address = "0000:05:00.0";
  shape.uverbs = "uverbs1";
  shape.netdev = "eth1";
  add_nic(w.files, shape);
  w.files[port_of(shape) + "/rate"] = "200 Gb/sec (4X HDR)";
}

}  // namespace

std::vector<Case> port_cases() {
  return {
      {"OnePortOfTwoIsDown",
       add_dark_port,
       {"ports.down", "ports.active"},
       {"ports.none_active"},
       true,
       {"DOWN (physically Disabled)"}},
      {"NoPortIsActive",
       [](World& w) { w.files[port_of() + "/state"] = "1: DOWN"; },
       {"ports.none_active", "proof.impossible"},
       {"ports.down", "proof.passed"},
       false,
       {"ip link set eth0 up"}},
      {"NoSubnetManager",
       [](World& w) {
         make_infiniband(w);
         w.files[port_of() + "/state"] = "2: INIT";
       },
       {"ports.no_subnet_manager"},
       {"ports.none_active"},
       false,
       {"systemctl start opensm"}},
      {"NarrowLink",
       [](World& w) { w.files[port_of() + "/rate"] = "100 Gb/sec (1X NDR)"; },
       {"ports.narrow", "ports.active"}},
      {"TwelveLanesAreNotNarrow",
       [](World& w) { w.files[port_of() + "/rate"] = "1200 Gb/sec (12X NDR)"; },
       {"ports.active"},
       {"ports.narrow"}},
      {"SlowerThanItsSibling",
       add_slow_nic,
       {"ports.slower"},
       {},
       true,
       {"200 Gb/s; another of its kind runs at 400 Gb/s"}},
      {"PortUnreadable",
       [](World& w) { w.files.erase(port_of() + "/state"); },
       {"ports.unreadable"},
       {"ports.active"}},
      {"NoPorts", [](World& w) { remove_below(w.files, port_of()); }, {"ports.unreadable"}},
      // Field case 15: 1500 / 2200 / 4200 allow 1024 / 2048 / 4096.
      {"Mtu1500",
       [](World& w) { set_mtu(w, "1500"); },
       {"mtu.netdev_small"},
       {"mtu.full"},
       true,
       {"path MTU 1024 of 4096", "ip link set eth0 mtu 4200"}},
      {"Mtu2200",
       [](World& w) { set_mtu(w, "2200"); },
       {"mtu.netdev_small"},
       {"mtu.full"},
       true,
       {"path MTU 2048"}},
      {"Mtu4200", [](World& w) { set_mtu(w, "4200"); }, {"mtu.full"}, {"mtu.netdev_small"}},
      {"MtuTooSmall",
       [](World& w) { set_mtu(w, "300"); },
       {"mtu.netdev_too_small"},
       {"mtu.netdev_small"},
       false},
      {"MtuHeldDownByThePort",
       [](World& w) {
         w.trials.nic_result.path_mtu = {{1, 1024}};
       },
       {"mtu.port_small"},
       {"mtu.full", "mtu.netdev_small"}},
      {"MtuHeldDownByRequest",
       [](World& w) { w.environment.path_mtu = 2048; },
       {"mtu.port_small"},
       {"mtu.full"},
       true,
       {"path MTU 2048: requested"}},
      {"NetdevInAnotherNamespace",
       [](World& w) { remove_below(w.files, "/sys/class/net/eth0"); },
       {"mtu.netdev_hidden"},
       {"mtu.full"},
       true,
       {"--network host"}},
      {"InfinibandMtu",
       make_infiniband,
       {"mtu.full", "gid.chosen", "traffic-class.infiniband"},
       {"traffic-class.default", "traffic-class.priorities"}},
      {"InfinibandSmallMtu",
       [](World& w) {
         make_infiniband(w);
         w.trials.nic_result.path_mtu = {{1, 2048}};
       },
       {"mtu.port_small"}},
      {"InfinibandMtuUntried",
       [](World& w) {
         make_infiniband(w);
         w.may_try = false;
       },
       {"mtu.untried"}},
      // Field case 14: [fe80 v1, fe80 v2, v4 v1, v4 v2] takes 3; empty and unreadable slots are skipped.
      {"GidChoiceSkipsUnreadableSlots",
       [](World& w) {
         w.files.erase(port_of() + "/gids/0");
         w.files[port_of() + "/gids/1"] = "garbage";
       },
       {"gid.chosen"},
       {"gid.none"},
       true,
       {"GID index 3 (10.0.0.1, RoCE v2, eth0): the first RoCE v2 entry with an IPv4 address"}},
      {"GidOverride",
       [](World& w) { w.environment.gid_index = 1; },
       {"gid.override"},
       {"gid.chosen", "gid.link_local"},
       true,
       {"GID index 1"}},
      {"GidBadOverride",
       [](World& w) { w.environment.gid_index = 4; },
       {"gid.bad_override"},
       {"gid.override"},
       false,
       {"GID index 4 is empty"}},
      {"GidNone",
       [](World& w) {
         for (int i = 0; i < 5; ++i) w.files[port_of() + "/gids/" + std::to_string(i)] = kEmptyGid;
       },
       {"gid.none"},
       {"gid.chosen", "mtu.full"},
       false,
       {"ip addr add"}},
      {"GidLinkLocal",
       [](World& w) {
         for (int i = 2; i < 4; ++i) w.files[port_of() + "/gids/" + std::to_string(i)] = kEmptyGid;
       },
       {"gid.link_local"},
       {"gid.chosen"},
       true,
       {"ip addr add ADDRESS/BITS dev eth0"}},
      {"GidVersion1Only",
       [](World& w) {
         for (int i : {1, 3}) w.files[port_of() + "/gids/" + std::to_string(i)] = kEmptyGid;
       },
       {"gid.v1"},
       {"gid.chosen"}},
      {"TrafficClassSet",
       [](World& w) { w.environment.traffic_class = 106; },
       {"traffic-class.set"},
       {"traffic-class.default"},
       true,
       {"traffic class 106 (DSCP 26)"}},
      {"TrafficClassForced",
       [](World& w) { w.files[pci_of() + "/infiniband/mlx5_0/tc/1/traffic_class"] = "Global tclass=162"; },
       {"traffic-class.forced"},
       {"traffic-class.default"},
       true,
       {"traffic class 162 (DSCP 40)", "echo tclass=-1 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class"}},
      {"TrafficClassNotForced",
       [](World& w) { w.files[pci_of() + "/infiniband/mlx5_0/tc/1/traffic_class"] = "Global tclass=-1"; },
       {"traffic-class.default"},
       {"traffic-class.forced"}},
  };
}

}  // namespace belfry::doctor
