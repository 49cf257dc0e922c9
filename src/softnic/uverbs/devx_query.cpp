// Queries of the device by mailbox: capabilities, adapter, port.

#include <algorithm>
#include <cstring>

#include "belfry/wire/doorbell.hpp"
#include "softnic/uverbs/device_attributes.hpp"
#include "softnic/uverbs/devx_objects.hpp"

namespace belfry::softnic {

namespace prm = wire::prm;

namespace {

/// Codes of table sizes: pkeys 128 << n, GIDs 8 << n (the smallest that holds the table).
std::uint64_t pkey_table_code() { return 0; }
std::uint64_t gid_table_code(std::size_t entries) {
  std::uint64_t code = 0;
  while ((std::size_t{8} << code) < entries) ++code;
  return code;
}

void fill_queues(const Limits& limits, std::uint8_t* c) {
  using G = prm::GeneralCapability;
  G::log_max_qp_sz::set(c, log_of(limits.send_queue_blocks));
  G::log_max_qp::set(c, log_of(limits.qps));
  G::log_max_cq_sz::set(c, log_of(limits.cq_entries));
  G::log_max_cq::set(c, log_of(limits.cqs));
  G::log_max_mkey::set(c, log_of(limits.mkeys));
  G::log_max_pd::set(c, log_of(limits.pds));
  G::log_max_msg::set(c, log_of(limits.max_message));
  G::log_max_ra_req_qp::set(c, log_of(limits.read_atomic_depth));
  G::log_max_ra_res_qp::set(c, log_of(limits.read_atomic_depth));
  G::max_wqe_sz_sq::set(c, kMaxSendWqeBytes);
  G::max_wqe_sz_rq::set(c, kMaxReceiveWqeBytes);
  G::log_max_mrw_sz::set(c, 64);
  G::log_max_wq_sz::set(c, log_of(limits.receive_entries));
  G::cq_oi::set(c, 1);
  G::cq_resize::set(c, 1);
  G::cqe_version::set(c, 1);
}

/// Everything that this device lacks stays 0: multi-packet and compressed entries, padding, signatures,
/// crypto, quality of service, offloads, other transports.
void fill_general(const FileState& file, std::uint8_t* c) {
  using G = prm::GeneralCapability;
  const bool ethernet = file.identity.link == LinkLayer::ethernet;
  fill_queues(file.limits(), c);
  G::hca_cap_2::set(c, 1);
  G::vhca_id::set(c, file.identity.index);
  G::relaxed_ordering_write::set(c, 1);
  G::relaxed_ordering_read::set(c, 1);
  G::gid_table_size::set(c, gid_table_code(file.identity.gids.size()));
  G::pkey_table_size::set(c, pkey_table_code());
  G::local_ca_ack_delay::set(c, kLocalAckDelay);
  G::port_type::set(
      c, static_cast<std::uint64_t>(ethernet ? prm::PortType::ethernet : prm::PortType::infiniband));
  G::num_ports::set(c, 1);
  G::num_lag_ports::set(c, 0);
  G::compact_address_vector::set(c, 1);
  G::roce::set(c, ethernet ? 1 : 0);
  G::atomic::set(c, 1);
  G::rc::set(c, 1);
  G::uar_4k::set(c, 1);
  G::log_pg_sz::set(c, 12);
  G::bf::set(c, 1);
  G::log_bf_reg_size::set(c, log_of(kBlueFlameBytes));
  G::log_uar_page_sz::set(c, 0);
  G::num_of_uars_per_page::set(c, wire::kUarRegistersPerPage);
  G::log_max_atomic_size_qp::set(c, 3);
}

void fill_atomic(std::uint8_t* c) {
  using A = prm::AtomicCapability;
  A::supported_atomic_req_8B_endianness_mode_1::set(c, 1);
  A::atomic_operations::set(c, prm::kAtomicCompareSwap | prm::kAtomicFetchAdd |
                                   prm::kAtomicMaskedCompareSwap | prm::kAtomicMaskedFetchAdd);
  A::atomic_size_qp::set(c, 1u << 2 | 1u << 3);  // 4 B and 8 B
}

void fill_roce(const FileState& file, std::uint8_t* c) {
  using R = prm::RoceCapability;
  R::fl_rc_qp_when_roce_enabled::set(c, 1);
  R::l3_type::set(c, 3);
  R::roce_version::set(c, 1u << 0 | 1u << 2);  // v1 and v2
  R::r_roce_dest_udp_port::set(c, 4791);
  R::r_roce_min_src_udp_port::set(c, 0xc000);
  R::r_roce_max_src_udp_port::set(c, 0xffff);
  R::roce_address_table_size::set(c, file.identity.gids.size());
}

bool known_group(std::uint32_t group) { return group <= 0x26; }

}  // namespace

PrmOutcome devx_query_hca_cap(FileState& file, Mailbox& mailbox) {
  const std::uint32_t op_mod = prm::CommandIn::op_mod::get(mailbox.in());
  std::uint8_t* c = prm::QueryHcaCapOut::capability::at(mailbox.out());
  const prm::CapabilityGroup group = prm::capability_group(op_mod);
  switch (group) {
    case prm::CapabilityGroup::general:
      fill_general(file, c);
      return {};
    case prm::CapabilityGroup::general_2:
      prm::GeneralCapability2::send_dbr_mode_no_dbr_ext::set(c, 1);
      prm::GeneralCapability2::log_max_send_dbr_less_qp_sq::set(c, log_of(file.limits().send_queue_blocks));
      return {};
    case prm::CapabilityGroup::atomic:
      fill_atomic(c);
      return {};
    case prm::CapabilityGroup::roce:
      if (file.identity.link == LinkLayer::ethernet) fill_roce(file, c);
      return {};
    default:
      // A group of features none of which is here is all zeros.
      return known_group(static_cast<std::uint32_t>(group)) ? PrmOutcome{}
                                                            : bad_parameter(DevxSyndrome::unknown_group);
  }
}

PrmOutcome devx_query_adapter(FileState&, Mailbox& mailbox) {
  std::uint8_t* block = prm::QueryAdapterOut::query_adapter_struct::at(mailbox.out());
  prm::AdapterBlock::ieee_vendor_id::set(block, kVendorId);
  std::uint8_t* board = prm::AdapterBlock::vsd_contd_psid::at(block);
  std::memcpy(board, kBoardId,
              std::min<std::size_t>(sizeof kBoardId - 1, prm::AdapterBlock::vsd_contd_psid::kBytes));
  return {};
}

PrmOutcome devx_query_issi(FileState&, Mailbox& mailbox) {
  prm::QueryIssiOut::current_issi::set(mailbox.out(), 1);
  prm::QueryIssiOut::supported_issi_dw0::set(mailbox.out(), 1u << 1);
  return {};
}

PrmOutcome devx_query_nic_vport_context(FileState& file, Mailbox& mailbox) {
  using In = prm::QueryNicVportContextIn;
  using C = prm::NicVportContext;
  if (In::other_vport::get(mailbox.in()) != 0 && In::vport_number::get(mailbox.in()) != 0) {
    return bad_parameter(DevxSyndrome::bad_port);
  }
  const bool ethernet = file.identity.link == LinkLayer::ethernet;
  std::uint8_t* c = prm::QueryNicVportContextOut::nic_vport_context::at(mailbox.out());
  C::roce_en::set(c, ethernet ? 1 : 0);
  C::mtu::set(c, ethernet ? file.identity.netdev_mtu : 0);
  C::system_image_guid::set(c, file.identity.guid);
  C::port_guid::set(c, file.identity.guid);
  C::node_guid::set(c, file.identity.guid);
  std::memcpy(C::permanent_address::at(c), file.identity.mac.data(), file.identity.mac.size());
  return {};
}

PrmOutcome devx_query_hca_vport_context(FileState& file, Mailbox& mailbox) {
  using In = prm::QueryHcaVportContextIn;
  using C = prm::HcaVportContext;
  const bool other = In::other_vport::get(mailbox.in()) != 0 && In::vport_number::get(mailbox.in()) != 0;
  if (other || In::port_num::get(mailbox.in()) > kPort) return bad_parameter(DevxSyndrome::bad_port);
  std::uint8_t* c = prm::QueryHcaVportContextOut::hca_vport_context::at(mailbox.out());
  C::port_physical_state::set(c, 5);  // link up
  C::port_state::set(c, 4);           // active
  C::vport_state::set(c, 4);
  C::system_image_guid::set(c, file.identity.guid);
  C::port_guid::set(c, file.identity.guid);
  C::node_guid::set(c, file.identity.guid);
  C::lid::set(c, file.identity.lid);
  C::sm_lid::set(c, file.identity.link == LinkLayer::ethernet ? 0 : 1);
  return {};
}

PrmOutcome devx_query_roce_address(FileState& file, Mailbox& mailbox) {
  using A = prm::RoceAddress;
  const std::uint32_t index = prm::QueryRoceAddressIn::roce_address_index::get(mailbox.in());
  if (file.identity.link != LinkLayer::ethernet) return bad_parameter(DevxSyndrome::not_supported);
  if (index >= file.identity.gids.size()) return bad_parameter(DevxSyndrome::bad_index);
  const GidEntry& entry = file.identity.gids[index];
  std::uint8_t* a = prm::QueryRoceAddressOut::roce_address::at(mailbox.out());
  std::memcpy(A::source_l3_address::at(a), entry.gid.data(), entry.gid.size());
  std::memcpy(A::source_mac::at(a), file.identity.mac.data(), file.identity.mac.size());
  // An IPv4 address is a GID whose first ten bytes are zero and the next two all ones.
  const bool ipv4 = std::all_of(entry.gid.begin(), entry.gid.begin() + 10, [](auto b) { return b == 0; }) &&
                    entry.gid[10] == 0xff && entry.gid[11] == 0xff;
  A::roce_l3_type::set(a, static_cast<std::uint64_t>(ipv4 ? prm::RoceL3Type::ipv4 : prm::RoceL3Type::ipv6));
  A::roce_version::set(a, static_cast<std::uint64_t>(entry.type == GidType::roce_v2 ? prm::RoceVersion::v2
                                                                                    : prm::RoceVersion::v1));
  return {};
}

}  // namespace belfry::softnic
