/// \file
/// Link state, speed and width of each port.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

constexpr std::array<Rule, 7> kRules = {{
    {"ports.active", Severity::ok, "a port is active, at the rate shown", "", ""},
    {"ports.down", Severity::warning, "a port has no link, while another port of the device has one", "",
     "plug in the cable and enable the switch's port; on Ethernet `ip link set <netdev> up`; "
     "`mlxlink -d <device> -p <port>` names the cause"},
    {"ports.none_active", Severity::error, "no port of the device is active",
     "a QP cannot leave INIT without an active port",
     "plug in the cable and enable the switch's port; on Ethernet `ip link set <netdev> up`; "
     "`mlxlink -d <device>` names the cause"},
    {"ports.no_subnet_manager", Severity::error, "an InfiniBand port has a link and stays in INIT or ARMED",
     "no subnet manager has given it a LID, so nothing can be addressed",
     "start one: `systemctl start opensm` on one host, or enable the switch's"},
    {"ports.narrow", Severity::warning, "the link has fewer than 4 lanes",
     "a cable or port that lost lanes works, at a fraction of the rate and with nothing in any log",
     "reseat or change the cable, then `mlxlink -d <device> -p <port>`"},
    {"ports.slower", Severity::warning, "the link is slower than another device's of the same kind",
     "collectives run at the pace of the slowest NIC",
     "compare cables, transceivers and the switch's ports: `mlxlink -d <device> -p <port>`"},
    {"ports.unreadable", Severity::unknown, "a port's state cannot be read", "", ""},
}};
const Rule& kActive = kRules[0];
const Rule& kDown = kRules[1];
const Rule& kNoneActive = kRules[2];
const Rule& kNoSubnetManager = kRules[3];
const Rule& kNarrow = kRules[4];
const Rule& kSlower = kRules[5];
const Rule& kUnreadable = kRules[6];

constexpr unsigned kUsualLanes = 4;

std::string netdev_of(const RdmaPort& port) {
  for (const host::GidEntry& entry : port.gids) {
    if (!entry.netdev.empty()) return entry.netdev;
  }
  return "NETDEV";
}

std::string describe(const RdmaPort& port) {
  return fmt::format("{}, {}, link layer {}", port.state, port.rate.empty() ? "rate unknown" : port.rate,
                     host::to_string(port.link));
}

/// The best rate of an active port, by PCI device id.
std::map<unsigned, double> best_rates(const Machine& machine) {
  std::map<unsigned, double> best;
  for (const RdmaDevice& device : machine.devices) {
    if (!device.mlx5()) continue;
    for (const RdmaPort& port : device.ports) {
      double& rate = best[device.pci->device];
      if (port.active()) rate = std::max(rate, port.gigabits);
    }
  }
  return best;
}

void look_at_inactive(Visit& visit, const RdmaDevice& device, const RdmaPort& port) {
  const std::string state = fmt::format("{} (physically {})", port.state,
                                        port.physical_state.empty() ? "unknown" : port.physical_state);
  const Fills fills = {{"netdev", netdev_of(port)}};
  const bool waits = port.state == "INIT" || port.state == "ARMED";
  const bool other = device.first_active_port() != nullptr;
  if (port.state.empty()) {
    visit.report(kUnreadable, device, port, "its state cannot be read");
  } else if (waits && port.link == host::LinkLayer::infiniband && !other) {
    visit.report(kNoSubnetManager, device, port, state, fills);
  } else {
    visit.report(other ? kDown : kNoneActive, device, port, state, fills);
  }
}

void look_at_active(Visit& visit, const RdmaDevice& device, const RdmaPort& port, double best) {
  visit.report(kActive, device, port, describe(port));
  if (port.lanes != 0 && port.lanes < kUsualLanes) {
    visit.report(kNarrow, device, port, fmt::format("{} lane(s): {}", port.lanes, port.rate));
  }
  if (port.gigabits > 0 && port.gigabits < best) {
    visit.report(kSlower, device, port,
                 fmt::format("{:g} Gb/s; another of its kind runs at {:g} Gb/s", port.gigabits, best));
  }
}

void check_ports(Visit& visit) {
  auto best = best_rates(visit.machine);
  for (const RdmaDevice& device : visit.machine.devices) {
    const double best_rate = device.mlx5() ? best[device.pci->device] : 0;
    if (device.ports.empty()) visit.report(kUnreadable, device, "sysfs shows no ports");
    for (const RdmaPort& port : device.ports) {
      if (port.active()) {
        look_at_active(visit, device, port, best_rate);
      } else {
        look_at_inactive(visit, device, port);
      }
    }
  }
}

}  // namespace

extern const Check kPortsCheck{"ports", "link state, speed and width", kRules, check_ports};

}  // namespace belfry::doctor
