#include "softnic/identity.hpp"

#include <string>

namespace belfry::softnic {
namespace {

constexpr unsigned kDevicesPerNode = 16;

/// Locally administered (bit 1 of the first byte), individual, and never 0.
std::array<std::uint8_t, 6> mac_of(unsigned node, unsigned index) {
  return {0x02, 0xbe, 0x1f, 0x00, static_cast<std::uint8_t>(node), static_cast<std::uint8_t>(index)};
}

/// Modified EUI-64 (RFC 4291, appendix A): ff:fe in the middle, universal/local bit inverted.
std::uint64_t eui64_of(const std::array<std::uint8_t, 6>& mac) {
  const std::uint8_t bytes[8] = {
      static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

Gid link_local_gid(std::uint64_t guid) {
  Gid gid{0xfe, 0x80};
  for (unsigned i = 0; i < 8; ++i) gid[8 + i] = static_cast<std::uint8_t>(guid >> (56 - 8 * i));
  return gid;
}

/// ::ffff:10.66.<node>.<index + 1>
Gid ipv4_mapped_gid(unsigned node, unsigned index) {
  Gid gid{};
  gid[10] = gid[11] = 0xff;
  gid[12] = 10;
  gid[13] = 66;
  gid[14] = static_cast<std::uint8_t>(node);
  gid[15] = static_cast<std::uint8_t>(index + 1);
  return gid;
}

}  // namespace

unsigned path_mtu_of_netdev(unsigned netdev_mtu) {
  // GRH (or an IPv6 header) 40, UDP 8, BTH 12, XRC header 4, atomic header 28, ICRC 4.
  constexpr unsigned kHeaders = 40 + 8 + 12 + 4 + 28 + 4;
  for (const unsigned mtu : {4096u, 2048u, 1024u, 512u, 256u}) {
    if (netdev_mtu >= mtu + kHeaders) return mtu;
  }
  return 0;
}

DeviceIdentity identify(const Config& config, unsigned index) {
  DeviceIdentity device{};
  device.index = index;
  device.name = "mlx5_" + std::to_string(index);
  device.link = config.link;
  device.mac = mac_of(config.node, index);
  device.guid = eui64_of(device.mac);
  const Gid local = link_local_gid(device.guid);
  if (config.link == LinkLayer::infiniband) {
    device.lid = static_cast<std::uint16_t>(1 + config.node * kDevicesPerNode + index);
    device.active_mtu = config.mtu == 0 ? 4096 : config.mtu;
    device.gids = {{local, GidType::infiniband}};
  } else {
    const Gid mapped = ipv4_mapped_gid(config.node, index);
    device.netdev = "belfry" + std::to_string(index);
    device.netdev_mtu = config.mtu == 0 ? 1500 : config.mtu;
    device.active_mtu = path_mtu_of_netdev(device.netdev_mtu);
    device.gids = {{local, GidType::roce_v1},
                   {local, GidType::roce_v2},
                   {mapped, GidType::roce_v1},
                   {mapped, GidType::roce_v2}};
  }
  return device;
}

}  // namespace belfry::softnic
