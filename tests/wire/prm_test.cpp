#include "belfry/wire/prm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

namespace belfry::wire::prm {
namespace {

/// Bytes that a mailbox must hold, by offset; every other byte must be 0.
using Golden = std::initializer_list<std::pair<std::size_t, std::vector<std::uint8_t>>>;

template <std::size_t N>
void expect_bytes(const std::array<std::uint8_t, N>& mailbox, const Golden& golden) {
  std::array<std::uint8_t, N> expected{};
  for (const auto& [offset, bytes] : golden) std::copy(bytes.begin(), bytes.end(), expected.begin() + offset);
  for (std::size_t i = 0; i < N; ++i) EXPECT_EQ(mailbox[i], expected[i]) << "byte " << i;
}

// Guards: a shift or mask that is wrong at a byte's edge, or at 64 bits, where a shift is undefined.
TEST(PrmField, EveryWidthAtEveryBit) {
  std::array<std::uint8_t, 9> bytes{};
  using First = PrmField<0, 1>;
  using Middle = PrmField<5, 7>;
  using Three = PrmField<13, 22>;
  using Whole = PrmField<8, 64>;
  First::set(bytes.data(), 1);
  EXPECT_EQ(bytes[0], 0x80);
  Middle::set(bytes.data(), 0x55);
  EXPECT_EQ(bytes[0], 0x85) << "0x55 is 101'0101: three bits end byte 0";
  EXPECT_EQ(bytes[1], 0x50);
  Three::set(bytes.data(), 0x3fffff);
  EXPECT_EQ(bytes[1], 0x57);
  EXPECT_EQ(bytes[2], 0xff);
  EXPECT_EQ(bytes[3], 0xff);
  EXPECT_EQ(bytes[4], 0xe0);
  EXPECT_EQ(Middle::get(bytes.data()), 0x55u);
  Whole::set(bytes.data(), 0x0102030405060708);
  EXPECT_EQ(bytes[1], 1);
  EXPECT_EQ(bytes[8], 8);
  EXPECT_EQ(Whole::get(bytes.data()), 0x0102030405060708u);
  EXPECT_EQ(bytes[0], 0x85);
}

// Guards: a value that is too large spilling into the neighbours.
TEST(PrmField, KeepsNeighboursWhenTheValueDoesNotFit) {
  std::array<std::uint8_t, 4> bytes{0xff, 0xff, 0xff, 0xff};
  using Field = PrmField<12, 4>;
  Field::set(bytes.data(), 0x10);
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 4>{0xff, 0xf0, 0xff, 0xff}));
  EXPECT_FALSE(Field::fits(0x10));
  EXPECT_TRUE(Field::fits(0xf));
}

constexpr bool usable_at_compile_time() {
  std::uint8_t bytes[4] = {};
  PrmField<8, 24>::set(bytes, 0xabcdef);
  return bytes[0] == 0 && bytes[3] == 0xef && PrmField<8, 24>::get(bytes) == 0xabcdef;
}
static_assert(usable_at_compile_time());

/// Whether fields follow each other without overlap.
template <class... Fields>
constexpr bool ascending() {
  std::uint32_t end = 0;
  bool ok = true;
  ((ok = ok && Fields::kBit >= end, end = Fields::kEnd), ...);
  return ok;
}

// Guards: two fields of one context on the same bits.
using Q = QpContext;
static_assert(
    ascending<Q::state, Q::lag_tx_port_affinity, Q::st, Q::pm_state, Q::req_e2e_credit_mode, Q::offload_type,
              Q::end_padding_mode, Q::wq_signature, Q::block_lb_mc, Q::latency_sensitive, Q::drain_sigerr,
              Q::pd, Q::mtu, Q::log_msg_max, Q::log_rq_size, Q::log_rq_stride, Q::no_sq, Q::log_sq_size,
              Q::retry_mode, Q::ts_format, Q::data_in_order, Q::rlky, Q::ulp_stateless_offload_mode,
              Q::counter_set_id, Q::uar_page, Q::send_dbr_mode, Q::user_index, Q::log_page_size,
              Q::remote_qpn, Q::primary_address_path, Q::secondary_address_path, Q::log_ack_req_freq,
              Q::log_sra_max, Q::retry_count, Q::rnr_retry, Q::fre, Q::cur_rnr_retry, Q::cur_retry_count,
              Q::next_send_psn, Q::log_num_dci_stream_channels, Q::cqn_snd, Q::log_num_dci_errored_streams,
              Q::deth_sqpn, Q::last_acked_psn, Q::ssn, Q::log_rra_max, Q::atomic_mode, Q::rre, Q::rwe, Q::rae,
              Q::page_offset, Q::cd_slave_receive, Q::cd_slave_send, Q::cd_master, Q::min_rnr_nak,
              Q::next_rcv_psn, Q::xrcd, Q::cqn_rcv, Q::dbr_addr, Q::q_key, Q::rq_type, Q::srqn_rmpn_xrqn,
              Q::rmsn, Q::hw_sq_wqebb_counter, Q::sw_sq_wqebb_counter, Q::hw_rq_counter, Q::sw_rq_counter,
              Q::cgs, Q::cs_req, Q::cs_res, Q::dc_access_key, Q::dbr_umem_valid, Q::dbr_umem_id>());
using A = AddressPath;
static_assert(ascending<A::fl, A::free_ar, A::pkey_index, A::grh, A::mlid, A::rlid, A::ack_timeout,
                        A::src_addr_index, A::stat_rate, A::hop_limit, A::tclass, A::flow_label, A::rgid_rip,
                        A::f_dscp, A::f_ecn, A::f_eth_prio, A::ecn, A::dscp, A::udp_sport, A::dei_cfi,
                        A::eth_prio, A::sl, A::vhca_port_num, A::rmac_47_32, A::rmac_31_0>());
using C = CqContext;
static_assert(
    ascending<C::status, C::as_notify, C::dbr_umem_valid, C::cqe_sz, C::cc, C::scqe_break_moderation_en,
              C::oi, C::cq_period_mode, C::cqe_comp_en, C::mini_cqe_res_format, C::st, C::dbr_umem_id,
              C::page_offset, C::cq_timestamp_format, C::log_cq_size, C::uar_page, C::cq_period,
              C::cq_max_count, C::c_eqn, C::log_page_size, C::last_notified_index, C::last_solicit_index,
              C::consumer_counter, C::producer_counter, C::dbr_addr>());
using M = MkeyContext;
static_assert(
    ascending<M::free, M::access_mode_4_2, M::relaxed_ordering_write, M::small_fence_on_rdma_read_response,
              M::umr_en, M::a, M::rw, M::rr, M::lw, M::lr, M::access_mode_1_0, M::qpn, M::mkey_7_0,
              M::length64, M::bsf_en, M::en_rinval, M::pd, M::start_addr, M::len, M::bsf_octword_size,
              M::translations_octword_size, M::relaxed_ordering_read, M::log_page_size>());

// Guards: a field of the QP context in another place than the PRM's. Offsets worked out by hand: the
// context begins at byte 24, its address path at byte 48.
TEST(PrmLayout, CreateQpGoldenBytes) {
  std::array<std::uint8_t, CreateQpIn::kBytes> in{};
  CreateQpIn::opcode::set(in.data(), static_cast<std::uint64_t>(Opcode::create_qp));
  CreateQpIn::wq_umem_offset::set(in.data(), 0x1000);
  CreateQpIn::wq_umem_id::set(in.data(), 0x77);
  CreateQpIn::wq_umem_valid::set(in.data(), 1);
  std::uint8_t* qpc = CreateQpIn::qpc::at(in.data());
  Q::pm_state::set(qpc, static_cast<std::uint64_t>(PathMigration::migrated));
  Q::pd::set(qpc, 0x010203);
  Q::log_rq_size::set(qpc, 6);
  Q::log_rq_stride::set(qpc, 2);
  Q::log_sq_size::set(qpc, 10);
  Q::ts_format::set(qpc, static_cast<std::uint64_t>(TimestampFormat::device_default));
  Q::rlky::set(qpc, 1);
  Q::uar_page::set(qpc, 0x040506);
  Q::send_dbr_mode::set(qpc, static_cast<std::uint64_t>(SendDoorbellMode::no_record_external));
  Q::user_index::set(qpc, 0x070809);
  Q::cqn_snd::set(qpc, 0x0a0b0c);
  Q::cqn_rcv::set(qpc, 0x0d0e0f);
  Q::dbr_addr::set(qpc, 0x40);
  Q::rq_type::set(qpc, static_cast<std::uint64_t>(ReceiveQueueType::none));
  Q::cs_req::set(qpc, 0x11);
  Q::cs_res::set(qpc, 0x22);
  Q::dbr_umem_valid::set(qpc, 1);
  Q::dbr_umem_id::set(qpc, 0x88);
  expect_bytes(in, {{0, {0x05, 0x00}},
                    {24 + 2, {0x18}},
                    {24 + 5, {1, 2, 3}},
                    {24 + 9, {0x32, 0x50, 0x50}},
                    {24 + 13, {4, 5, 6}},
                    {24 + 16, {0x40, 7, 8, 9}},
                    {24 + 125, {0x0a, 0x0b, 0x0c}},
                    {24 + 157, {0x0d, 0x0e, 0x0f}},
                    {24 + 167, {0x40}},
                    {24 + 172, {0x03}},
                    {24 + 198, {0x11, 0x22}},
                    {24 + 208, {0x10}},
                    {24 + 231, {0x88}},
                    {256, {0, 0, 0, 0, 0, 0, 0x10, 0}},
                    {264, {0, 0, 0, 0x77}},
                    {268, {0x80}}});
}

// Guards: what connects a QP: peer, path, PSNs, depths and rights.
TEST(PrmLayout, ModifyQpGoldenBytes) {
  std::array<std::uint8_t, ModifyQpIn::kBytes> in{};
  ModifyQpIn::opcode::set(in.data(), static_cast<std::uint64_t>(Opcode::init2rtr_qp));
  ModifyQpIn::qpn::set(in.data(), 0xabcdef);
  ModifyQpIn::opt_param_mask::set(in.data(), kOptRemoteRead | kOptRemoteWrite | kOptRemoteAtomic);
  std::uint8_t* qpc = ModifyQpIn::qpc::at(in.data());
  Q::mtu::set(qpc, mtu_code(4096));
  Q::log_msg_max::set(qpc, 30);
  Q::remote_qpn::set(qpc, 0x123456);
  Q::log_sra_max::set(qpc, 4);
  Q::retry_count::set(qpc, 7);
  Q::rnr_retry::set(qpc, 6);
  Q::next_send_psn::set(qpc, 0x111213);
  Q::log_rra_max::set(qpc, 4);
  Q::atomic_mode::set(qpc, static_cast<std::uint64_t>(AtomicMode::up_to_8_bytes));
  Q::rre::set(qpc, 1);
  Q::rae::set(qpc, 1);
  Q::min_rnr_nak::set(qpc, 12);
  Q::next_rcv_psn::set(qpc, 0x212223);
  std::uint8_t* path = Q::primary_address_path::at(qpc);
  A::grh::set(path, 1);
  A::rlid::set(path, 0x1234);
  A::ack_timeout::set(path, 14);
  A::src_addr_index::set(path, 3);
  A::hop_limit::set(path, 64);
  A::tclass::set(path, 0x68);
  A::rgid_rip::at(path)[15] = 0x99;
  A::udp_sport::set(path, 0xc000);
  A::sl::set(path, 5);
  A::vhca_port_num::set(path, 1);
  A::rmac_47_32::set(path, 0x0102);
  A::rmac_31_0::set(path, 0x03040506);
  expect_bytes(in, {{0, {0x05, 0x03}},
                    {9, {0xab, 0xcd, 0xef}},
                    {16, {0, 0, 0, 0x0e}},
                    {24 + 8, {0xbe}},
                    {24 + 21, {0x12, 0x34, 0x56}},
                    {48 + 5, {0x80, 0x12, 0x34, 0x70, 3, 0, 64}},
                    {48 + 12, {0x06, 0x80}},
                    {48 + 31, {0x99}},
                    {48 + 34, {0xc0, 0x00, 0x05, 0x01, 1, 2, 3, 4, 5, 6}},
                    {24 + 113, {0x87, 0xc0}},
                    {24 + 121, {0x11, 0x12, 0x13}},
                    {24 + 145, {0x83, 0xa0}},
                    {24 + 148, {0x0c, 0x21, 0x22, 0x23}}});
}

// Guards: a field of the CQ context in another place. The context begins at byte 16.
TEST(PrmLayout, CreateCqGoldenBytes) {
  std::array<std::uint8_t, CreateCqIn::kBytes> in{};
  CreateCqIn::opcode::set(in.data(), static_cast<std::uint64_t>(Opcode::create_cq));
  CreateCqIn::uid::set(in.data(), 9);
  CreateCqIn::cq_umem_offset::set(in.data(), 0x2000);
  CreateCqIn::cq_umem_id::set(in.data(), 0x55);
  CreateCqIn::cq_umem_valid::set(in.data(), 1);
  std::uint8_t* cqc = CreateCqIn::cq_context::at(in.data());
  C::dbr_umem_valid::set(cqc, 1);
  C::cqe_sz::set(cqc, static_cast<std::uint64_t>(CqeSize::bytes_128));
  C::cc::set(cqc, 1);
  C::oi::set(cqc, 1);
  C::st::set(cqc, static_cast<std::uint64_t>(CqState::armed));
  C::dbr_umem_id::set(cqc, 0x66);
  C::log_cq_size::set(cqc, 17);
  C::uar_page::set(cqc, 0x010203);
  C::c_eqn::set(cqc, 4);
  C::log_page_size::set(cqc, 9);
  C::dbr_addr::set(cqc, 0x0102030405060708);
  expect_bytes(in, {{0, {0x04, 0x00, 0, 9}},
                    {16, {0x02, 0x32, 0x09}},
                    {16 + 7, {0x66}},
                    {16 + 12, {17, 1, 2, 3}},
                    {16 + 23, {4, 9}},
                    {16 + 56, {1, 2, 3, 4, 5, 6, 7, 8}},
                    {80, {0, 0, 0, 0, 0, 0, 0x20, 0}},
                    {88, {0, 0, 0, 0x55}},
                    {92, {0x80}}});
}

// Guards: access rights of a key exchanged, which would grant what nobody asked for.
TEST(PrmLayout, CreateMkeyGoldenBytes) {
  const auto rights = [](auto set) {
    std::array<std::uint8_t, M::kBytes> mkc{};
    set(mkc.data());
    return mkc[2];
  };
  EXPECT_EQ(rights([](void* mkc) { M::a::set(mkc, 1); }), 0x40);
  EXPECT_EQ(rights([](void* mkc) { M::rw::set(mkc, 1); }), 0x20);
  EXPECT_EQ(rights([](void* mkc) { M::rr::set(mkc, 1); }), 0x10);
  EXPECT_EQ(rights([](void* mkc) { M::lw::set(mkc, 1); }), 0x08);
  EXPECT_EQ(rights([](void* mkc) { M::lr::set(mkc, 1); }), 0x04);
  std::array<std::uint8_t, CreateMkeyIn::kBytes> in{};
  std::uint8_t* mkc = CreateMkeyIn::memory_key_mkey_entry::at(in.data());
  M::access_mode_1_0::set(mkc, static_cast<std::uint64_t>(MkeyAccessMode::mtt));
  M::qpn::set(mkc, 0xffffff);
  M::mkey_7_0::set(mkc, 0x42);
  M::pd::set(mkc, 0x010203);
  M::start_addr::set(mkc, 0x7f0000001000);
  M::len::set(mkc, 0x10000);
  M::log_page_size::set(mkc, 12);
  CreateMkeyIn::mkey_umem_valid::set(in.data(), 1);
  CreateMkeyIn::translations_octword_actual_size::set(in.data(), 8);
  CreateMkeyIn::mkey_umem_id::set(in.data(), 0x99);
  expect_bytes(in, {{12, {0x40}},
                    {16 + 2, {0x01}},
                    {16 + 4, {0xff, 0xff, 0xff, 0x42}},
                    {16 + 13, {1, 2, 3}},
                    {16 + 16, {0, 0, 0x7f, 0, 0, 0, 0x10, 0}},
                    {16 + 24, {0, 0, 0, 0, 0, 1, 0, 0}},
                    {16 + 59, {12}},
                    {96, {0, 0, 0, 8}},
                    {100, {0, 0, 0, 0x99}}});
}

// Guards: the capabilities that other libraries read to choose their data path.
TEST(PrmLayout, CapabilityGoldenBytes) {
  static_assert(capability_op_mod(CapabilityGroup::general) == 0x01);
  static_assert(capability_op_mod(CapabilityGroup::general_2) == 0x41);
  static_assert(capability_op_mod(CapabilityGroup::atomic, false) == 0x06);
  static_assert(capability_group(0x41) == CapabilityGroup::general_2);
  std::array<std::uint8_t, GeneralCapability::kBytes> general{};
  using G = GeneralCapability;
  G::hca_cap_2::set(general.data(), 1);
  G::log_max_qp::set(general.data(), 18);
  G::port_type::set(general.data(), static_cast<std::uint64_t>(PortType::ethernet));
  G::num_ports::set(general.data(), 1);
  G::log_max_msg::set(general.data(), 30);
  G::cqe_version::set(general.data(), 1);
  G::compact_address_vector::set(general.data(), 1);
  G::roce::set(general.data(), 1);
  G::atomic::set(general.data(), 1);
  G::rc::set(general.data(), 1);
  G::uar_4k::set(general.data(), 1);
  G::bf::set(general.data(), 1);
  G::log_bf_reg_size::set(general.data(), 9);
  expect_bytes(general, {{4, {0x80}},
                         {19, {18}},
                         {54, {0x01, 1}},
                         {56, {30}},
                         {63, {0x01, 0x80}},
                         {67, {0x06}},
                         {71, {0x01, 0x80}},
                         {76, {0x80, 0x09}}});
  std::array<std::uint8_t, GeneralCapability2::kBytes> second{};
  GeneralCapability2::send_dbr_mode_no_dbr_ext::set(second.data(), 1);
  expect_bytes(second, {{0x5c, {0x40}}});
}

// Guards: an MTU code that is taken for bytes, or one that does not exist.
TEST(PrmValues, MtuCodes) {
  static_assert(mtu_bytes(1) == 256 && mtu_bytes(5) == 4096);
  static_assert(mtu_bytes(0) == 0 && mtu_bytes(6) == 0 && mtu_bytes(7) == 0);
  static_assert(mtu_code(1024) == 3 && mtu_code(1500) == 0);
}

}  // namespace
}  // namespace belfry::wire::prm
