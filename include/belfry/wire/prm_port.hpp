#pragma once
/// \file
/// PRM queries of ports: vport contexts, GIDs, partition keys, RoCE addresses. Offsets: Linux,
/// include/linux/mlx5/mlx5_ifc.h.

#include <cstdint>

#include "belfry/wire/prm_command.hpp"

// Fields keep the PRM's own lower-case names.
// NOLINTBEGIN(readability-identifier-naming)
namespace belfry::wire::prm {

/// Ethernet side of a virtual port.
struct NicVportContext {
  static constexpr std::uint32_t kBytes = 256;  ///< a list of MAC addresses follows where asked for
  using min_wqe_inline_mode = PrmField<0x005, 3>;
  using roce_en = PrmField<0x01f, 1>;
  using mtu = PrmField<0x130, 16>;
  using system_image_guid = PrmField<0x140, 64>;
  using port_guid = PrmField<0x180, 64>;
  using node_guid = PrmField<0x1c0, 64>;
  using promisc_all = PrmField<0x782, 1>;
  using permanent_address = PrmBytes<0x7b0, 6>;  ///< MAC, behind two reserved bytes
};
static_assert(NicVportContext::mtu::kEnd == NicVportContext::system_image_guid::kBit);
static_assert(NicVportContext::permanent_address::kEnd == 0xfc * 8);

struct QueryNicVportContextIn : CommandIn {
  using other_vport = PrmField<0x040, 1>;
  using vport_number = PrmField<0x050, 16>;
  using allowed_list_type = PrmField<0x065, 3>;
};
struct QueryNicVportContextOut : CommandOut {
  static constexpr std::uint32_t kBytes = 272;
  using nic_vport_context = PrmPart<0x080, NicVportContext>;
};
static_assert(QueryNicVportContextOut::nic_vport_context::kEnd == QueryNicVportContextOut::kBytes * 8);

/// InfiniBand side of a virtual port.
struct HcaVportContext {
  static constexpr std::uint32_t kBytes = 512;
  using grh_required = PrmField<0x103, 1>;
  using port_physical_state = PrmField<0x110, 4>;
  using vport_state_policy = PrmField<0x114, 4>;
  using port_state = PrmField<0x118, 4>;
  using vport_state = PrmField<0x11c, 4>;
  using system_image_guid = PrmField<0x140, 64>;
  using port_guid = PrmField<0x180, 64>;
  using node_guid = PrmField<0x1c0, 64>;
  using cap_mask1 = PrmField<0x200, 32>;
  using lid = PrmField<0x300, 16>;
  using init_type_reply = PrmField<0x314, 4>;
  using lmc = PrmField<0x318, 3>;
  using subnet_timeout = PrmField<0x31b, 5>;
  using sm_lid = PrmField<0x320, 16>;
  using sm_sl = PrmField<0x330, 4>;
};
static_assert(HcaVportContext::node_guid::kEnd == HcaVportContext::cap_mask1::kBit);
static_assert(HcaVportContext::sm_sl::kEnd <= HcaVportContext::kBytes * 8);

struct QueryHcaVportContextIn : CommandIn {
  using other_vport = PrmField<0x040, 1>;
  using port_num = PrmField<0x04c, 4>;
  using vport_number = PrmField<0x050, 16>;
};
struct QueryHcaVportContextOut : CommandOut {
  static constexpr std::uint32_t kBytes = 528;
  using hca_vport_context = PrmPart<0x080, HcaVportContext>;
};
static_assert(QueryHcaVportContextOut::hca_vport_context::kEnd == QueryHcaVportContextOut::kBytes * 8);

/// gid_index or pkey_index that asks for the whole table.
inline constexpr std::uint16_t kWholeTable = 0xffff;

struct QueryHcaVportGidIn : CommandIn {
  using other_vport = PrmField<0x040, 1>;
  using port_num = PrmField<0x04c, 4>;
  using vport_number = PrmField<0x050, 16>;
  using gid_index = PrmField<0x070, 16>;
};
struct QueryHcaVportGidOut : CommandOut {
  static constexpr std::uint32_t kBytes = 16;  ///< gids_num entries of 16 B follow
  using gids_num = PrmField<0x060, 16>;
};
static_assert(QueryHcaVportGidOut::gids_num::kEnd <= QueryHcaVportGidOut::kBytes * 8);

struct QueryHcaVportPkeyIn : CommandIn {
  using other_vport = PrmField<0x040, 1>;
  using port_num = PrmField<0x04c, 4>;
  using vport_number = PrmField<0x050, 16>;
  using pkey_index = PrmField<0x070, 16>;
};
struct QueryHcaVportPkeyOut : CommandOut {
  static constexpr std::uint32_t kBytes = 16;  ///< entries of 4 B follow, the key in the low half
};

/// RoceAddress::roce_version.
enum class RoceVersion : std::uint8_t { v1 = 0, v2 = 2 };
/// RoceAddress::roce_l3_type.
enum class RoceL3Type : std::uint8_t { ipv4 = 0, ipv6 = 1 };

/// One entry of a RoCE port's address table.
struct RoceAddress {
  static constexpr std::uint32_t kBytes = 32;
  using source_l3_address = PrmBytes<0x000, 16>;
  using vlan_valid = PrmField<0x083, 1>;
  using vlan_id = PrmField<0x084, 12>;
  using source_mac = PrmBytes<0x090, 6>;
  using roce_l3_type = PrmField<0x0d4, 4>;
  using roce_version = PrmField<0x0d8, 8>;
};
static_assert(RoceAddress::source_l3_address::kEnd == 16 * 8);
static_assert(RoceAddress::source_mac::kEnd == 24 * 8 && RoceAddress::roce_version::kEnd == 28 * 8);

struct QueryRoceAddressIn : CommandIn {
  using roce_address_index = PrmField<0x040, 16>;
  using vhca_port_num = PrmField<0x05c, 4>;
};
struct QueryRoceAddressOut : CommandOut {
  static constexpr std::uint32_t kBytes = 48;
  using roce_address = PrmPart<0x080, RoceAddress>;
};
static_assert(QueryRoceAddressOut::roce_address::kEnd == QueryRoceAddressOut::kBytes * 8);

}  // namespace belfry::wire::prm
// NOLINTEND(readability-identifier-naming)
