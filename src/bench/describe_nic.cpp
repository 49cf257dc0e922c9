#include "bench/describe_nic.hpp"

#include <fmt/format.h>

#include <string>

#include "belfry/host/device_list.hpp"

namespace belfry::bench {
namespace {

/// Gb/s of one lane: the codes of ibv_port_attr::active_speed (enum ib_port_speed of the kernel).
double lane_gigabits(unsigned code) {
  switch (code) {
    case 1:
      return 2.5;
    case 2:
      return 5;
    case 4:
    case 8:
      return 10;
    case 16:
      return 14;
    case 32:
      return 25;
    case 64:
      return 50;
    case 128:
      return 100;
    default:
      return 0;
  }
}

/// Lanes: the codes of ibv_port_attr::active_width.
unsigned lanes(unsigned code) {
  switch (code) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

}  // namespace

std::string link_text(host::LinkLayer link, unsigned speed, unsigned width) {
  std::string text = link == host::LinkLayer::ethernet ? "Ethernet" : "InfiniBand";
  const double gigabits = lane_gigabits(speed) * lanes(width);
  if (gigabits > 0) text += fmt::format(" {:g} Gb/s", gigabits);
  return text;
}

NicDescription describe_nic(const host::Context& context) {
  NicDescription nic;
  nic.kind = context.is_software_nic() ? NicKind::soft_cpu : NicKind::hardware;
  nic.name = context.device_name();
  nic.firmware = context.limits().fw_ver;
  nic.link = link_text(context.link(), context.port_attributes().active_speed,
                       context.port_attributes().active_width);
  const host::DeviceList devices;
  for (const host::DeviceInfo& info : devices.infos()) {
    if (info.name == nic.name) nic.board = info.board_id;
  }
  return nic;
}

}  // namespace belfry::bench
