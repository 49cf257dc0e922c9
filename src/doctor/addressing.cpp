/// \file
/// Path MTU against the interface's MTU, the GID that is taken and why, and traffic classes.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "belfry/host/errors.hpp"
#include "belfry/host/mtu.hpp"
#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

/// Calls `look` for each active port.
template <class Look>
void for_active_ports(Visit& visit, const Look& look) {
  for (const RdmaDevice& device : visit.machine.devices) {
    for (const RdmaPort& port : device.ports) {
      if (port.active()) look(device, port);
    }
  }
}

/// What host::Context would take.
host::GidChoice choose(const Visit& visit, const RdmaPort& port) {
  return host::choose_gid(port.link, port.gids, visit.environment.gid_index);
}

/// The interface behind the chosen GID; empty where there is none.
std::string netdev_of(const Visit& visit, const RdmaPort& port) {
  try {
    return choose(visit, port).entry.netdev;
  } catch (const host::Error&) {
    return {};
  }
}

constexpr unsigned kBestMtu = 4096;

constexpr std::array<Rule, 6> kMtuRules = {{
    {"mtu.full", Severity::ok, "the path MTU is 4096 B", "", ""},
    {"mtu.netdev_small", Severity::warning, "the interface's MTU holds the path MTU down",
     "RoCE packets have to fit in Ethernet frames: with an MTU of 1500 a path MTU of 1024 is left, and each "
     "message becomes four times as many packets",
     "`ip link set <netdev> mtu 4200` (or 9000), at both ends and on the switch"},
    {"mtu.netdev_too_small", Severity::error, "the interface's MTU is too small for any path MTU",
     "the smallest path MTU, 256 B, needs 352 B", "`ip link set <netdev> mtu 4200`"},
    {"mtu.port_small", Severity::warning, "the port's active MTU is below 4096 B",
     "the subnet manager, the switch or BELFRY_PATH_MTU allows no more",
     "InfiniBand: raise the MTU of the partition in opensm's partitions.conf (`mtu=5`); RoCE: "
     "`ip link set <netdev> mtu 4200`"},
    {"mtu.netdev_hidden", Severity::unknown, "the interface of a RoCE port cannot be seen",
     "it lies in another network namespace, so its MTU, and whether the GID belongs to this container, "
     "cannot be told",
     "run in the host's network namespace (`docker run --network host`), or move the device here: "
     "`rdma dev set <device> netns PID`"},
    {"mtu.untried", Severity::unknown, "an InfiniBand port's MTU is not among the files", "", ""},
}};

void report_port_mtu(Visit& visit, const RdmaDevice& device, const RdmaPort& port, unsigned bytes,
                     const std::string& reason, const std::string& netdev) {
  const Fills fills = {{"netdev", netdev.empty() ? "NETDEV" : netdev}};
  const Rule& rule = bytes >= kBestMtu ? kMtuRules[0] : kMtuRules[3];
  Finding& finding = visit.report(rule, device, port, reason, fills);
  finding.figures.push_back({"path_mtu_bytes", bytes});
}

/// The active MTU of a port, which only the device tells; 0 where it was not asked.
unsigned active_mtu(Visit& visit, const RdmaDevice& device, const RdmaPort& port) {
  if (visit.trials == nullptr) return 0;
  const auto& mtus = visit.trials->nic(device.name).path_mtu;
  const auto found = mtus.find(port.number);
  return found == mtus.end() ? 0 : found->second;
}

void check_roce_mtu(Visit& visit, const RdmaDevice& device, const RdmaPort& port) {
  const std::string netdev = netdev_of(visit, port);
  if (netdev.empty()) return;  // the check of GIDs says why
  const auto mtu = visit.tree().number("/sys/class/net/" + netdev + "/mtu");
  if (!mtu || *mtu < 0) {
    visit.report(kMtuRules[4], device, port, "interface " + netdev + " is not in /sys/class/net");
    return;
  }
  const auto netdev_mtu = static_cast<unsigned>(std::min<std::int64_t>(*mtu, 1 << 20));
  const unsigned fits = host::path_mtu_of_netdev(netdev_mtu);
  if (fits < kBestMtu) {
    const std::string found =
        fits == 0 ? fmt::format("{} has MTU {}: no path MTU fits", netdev, netdev_mtu)
                  : fmt::format("{} has MTU {}: path MTU {} of {} B", netdev, netdev_mtu, fits, kBestMtu);
    Finding& finding =
        visit.report(fits == 0 ? kMtuRules[2] : kMtuRules[1], device, port, found, {{"netdev", netdev}});
    finding.figures.push_back({"path_mtu_bytes", fits});
    return;
  }
  const unsigned active = active_mtu(visit, device, port);
  const auto choice =
      host::choose_mtu(active == 0 ? kBestMtu : active, netdev_mtu, visit.environment.path_mtu);
  report_port_mtu(visit, device, port, choice.bytes, choice.reason, netdev);
}

void check_mtu(Visit& visit) {
  for_active_ports(visit, [&](const RdmaDevice& device, const RdmaPort& port) {
    if (port.link == host::LinkLayer::ethernet) {
      check_roce_mtu(visit, device, port);
      return;
    }
    const unsigned active = active_mtu(visit, device, port);
    if (active == 0) {
      visit.report(kMtuRules[5], device, port, "ask the device: `ibv_devinfo -d " + device.name + "`");
      return;
    }
    const auto choice = host::choose_mtu(active, std::nullopt, visit.environment.path_mtu);
    report_port_mtu(visit, device, port, choice.bytes, choice.reason, "");
  });
}

constexpr std::array<Rule, 6> kGidRules = {{
    {"gid.chosen", Severity::ok, "the GID that is taken, and why", "", ""},
    {"gid.override", Severity::note, "BELFRY_GID_INDEX chooses the GID", "",
     "unset BELFRY_GID_INDEX for the automatic choice"},
    {"gid.none", Severity::error, "no usable GID",
     "a RoCE QP needs an address, which comes from the interface",
     "`ip link set NETDEV up && ip addr add ADDRESS/BITS dev NETDEV`"},
    {"gid.bad_override", Severity::error, "BELFRY_GID_INDEX names an entry that is empty or not there", "",
     "unset BELFRY_GID_INDEX for the automatic choice"},
    {"gid.link_local", Severity::warning, "only a link-local GID is there",
     "fe80:: addresses do not cross a router, and on a host with several NICs the kernel cannot tell which "
     "one a peer is behind",
     "`ip addr add ADDRESS/BITS dev <netdev>`"},
    {"gid.v1", Severity::warning, "only RoCE v1 GIDs are there",
     "RoCE v1 has no IP header: it crosses no router, and switches cannot prioritise it by DSCP",
     "give the interface an IPv4 address: `ip addr add ADDRESS/BITS dev <netdev>`"},
}};

const Rule& rule_of_gid(const Visit& visit, const RdmaPort& port, const host::GidEntry& entry) {
  if (visit.environment.gid_index) return kGidRules[1];
  if (port.link == host::LinkLayer::infiniband) return kGidRules[0];
  if (entry.type != host::GidType::roce_v2) return kGidRules[5];
  return host::scope_of(entry.gid) == host::GidScope::link_local ? kGidRules[4] : kGidRules[0];
}

void check_gid(Visit& visit) {
  for_active_ports(visit, [&](const RdmaDevice& device, const RdmaPort& port) {
    try {
      const host::GidChoice choice = choose(visit, port);
      const std::string netdev = choice.entry.netdev.empty() ? "NETDEV" : choice.entry.netdev;
      Finding& finding = visit.report(rule_of_gid(visit, port, choice.entry), device, port, choice.reason,
                                      {{"netdev", netdev}});
      finding.figures.push_back({"gid_index", choice.entry.index});
    } catch (const host::Error& error) {
      visit.report(visit.environment.gid_index ? kGidRules[3] : kGidRules[2], device, port, error.message());
    }
  });
}

constexpr std::array<Rule, 5> kTrafficRules = {{
    {"traffic-class.set", Severity::ok, "BELFRY_TRAFFIC_CLASS marks RoCE packets", "", ""},
    {"traffic-class.default", Severity::note, "RoCE packets carry DSCP 0",
     "a switch puts them where all other traffic is; a lossless class, where the network has one, goes "
     "unused "
     "and losses show as retries",
     "`export BELFRY_TRAFFIC_CLASS=106` (DSCP 26, ECN capable) where the switches prioritise that, or what "
     "your network uses"},
    {"traffic-class.forced", Severity::note, "the driver overrides the traffic class of all QPs",
     "whatever a program asks for is replaced",
     "to remove it: `echo tclass=-1 > /sys/class/infiniband/<device>/tc/<port>/traffic_class`"},
    {"traffic-class.priorities", Severity::unknown, "trust mode and flow control are not among the files",
     "DSCP only matters where the NIC trusts it and the priority behind it is lossless",
     "look at them: `mlnx_qos -i <netdev>`, or `dcb pfc show dev <netdev>` and `dcb app show dev <netdev>`"},
    {"traffic-class.infiniband", Severity::ok, "InfiniBand: the service level decides, not the traffic class",
     "", ""},
}};

/// "Global tclass=106" or "106"; -1 and nothing mean none.
std::optional<std::int64_t> forced_class(const std::string& text) {
  const std::size_t digits = text.find_last_not_of("0123456789");
  const std::size_t start = digits == std::string::npos ? 0 : digits + 1;
  if (start >= text.size() || (start > 0 && text[start - 1] == '-')) return std::nullopt;
  return to_number(text.substr(start));
}

void check_traffic_class(Visit& visit) {
  for_active_ports(visit, [&](const RdmaDevice& device, const RdmaPort& port) {
    if (port.link == host::LinkLayer::infiniband) {
      visit.report(kTrafficRules[4], device, port,
                   fmt::format("service level {}", visit.environment.service_level.value_or(0)));
      return;
    }
    const unsigned wanted = visit.environment.traffic_class.value_or(0);
    const auto forced = forced_class(port.forced_traffic_class);
    if (forced) {
      visit.report(kTrafficRules[2], device, port,
                   fmt::format("traffic class {} (DSCP {}) for every QP", *forced, *forced >> 2));
    } else if (wanted != 0) {
      visit.report(kTrafficRules[0], device, port,
                   fmt::format("traffic class {} (DSCP {})", wanted, wanted >> 2));
    } else {
      visit.report(kTrafficRules[1], device, port, "traffic class 0: BELFRY_TRAFFIC_CLASS is not set");
    }
    if (device.software_nic) return;
    const std::string netdev = netdev_of(visit, port);
    visit.report(kTrafficRules[3], device, port, "trust mode and flow control have to be asked of the driver",
                 {{"netdev", netdev.empty() ? "NETDEV" : netdev}});
  });
}

}  // namespace

extern const Check kMtuCheck{"mtu", "path MTU, and whether the interface's MTU holds it down", kMtuRules,
                             check_mtu};
extern const Check kGidCheck{"gid", "the GID that is taken, and why", kGidRules, check_gid};
extern const Check kTrafficClassCheck{"traffic-class", "traffic class of RoCE packets, as far as files tell",
                                      kTrafficRules, check_traffic_class};

}  // namespace belfry::doctor
