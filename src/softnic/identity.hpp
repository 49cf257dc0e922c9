#pragma once
/// \file
/// Names and addresses of the software NIC's devices, all derived from (node, index) so that every
/// process of a node sees the same devices.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "softnic/config.hpp"

namespace belfry::softnic {

using Gid = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { infiniband, roce_v1, roce_v2 };

struct GidEntry {
  Gid gid;
  GidType type;
};

struct DeviceIdentity {
  unsigned index;
  std::string name;    ///< mlx5_<index>
  std::string netdev;  ///< belfry<index>; Ethernet only
  std::uint64_t guid;  ///< host order
  std::uint16_t lid;   ///< 0 on Ethernet
  std::array<std::uint8_t, 6> mac;
  LinkLayer link;
  unsigned netdev_mtu;         ///< Ethernet only, else 0
  unsigned active_mtu;         ///< bytes: 256..4096
  std::vector<GidEntry> gids;  ///< InfiniBand: one; Ethernet: fe80 v1, fe80 v2, IPv4 v1, IPv4 v2
};

/// The path MTU that the kernel derives from a RoCE netdev's MTU: the largest InfiniBand MTU that fits
/// with 96 bytes of headers, the most that a RoCEv2 packet carries (Linux, iboe_get_mtu). 0 where none does.
unsigned path_mtu_of_netdev(unsigned netdev_mtu);

/// What sysfs and QUERY_DEVICE say of every device.
inline constexpr char kFirmwareVersion[] = "28.39.1002";
inline constexpr char kBoardId[] = "BELFRY_SOFTNIC";

DeviceIdentity identify(const Config& config, unsigned index);

}  // namespace belfry::softnic
