#include <gtest/gtest.h>

#include "host/devx_transitions.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

namespace prm = wire::prm;
using In = prm::ModifyQpIn;
using Qp = prm::QpContext;
using Path = prm::AddressPath;

ConnectionPlan plan(LinkLayer link) {
  ConnectionPlan p;
  p.remote.qpn = 0x00beef;
  p.remote.psn = 0x123456;
  p.remote.lid = 0x42;
  p.remote.link = link;
  p.remote.gid_type = link == LinkLayer::ethernet ? GidType::roce_v2 : GidType::infiniband;
  p.remote.gid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  p.parameters.traffic_class = 0xb8;
  p.parameters.service_level = 5;
  p.parameters.retry_count = 6;
  p.parameters.rnr_retry = 3;
  p.parameters.ack_timeout = 17;
  p.path_mtu = 2048;
  p.depth = {16, 4};
  p.global = link == LinkLayer::ethernet;
  return p;
}

TransitionFacts facts() {
  TransitionFacts f;
  f.qpn = 0xabcdef;
  f.port = 2;
  f.gid_index = 3;
  f.send_psn = 0x654321;
  f.remote_access = Access::remote_write | Access::remote_atomic;
  f.ethernet.mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
  f.ethernet.udp_source_port = 0xc123;
  return f;
}

const std::uint8_t* qpc(const ModifyQpMailbox& box) { return In::qpc::at(box.data()); }
const std::uint8_t* path(const ModifyQpMailbox& box) { return Qp::primary_address_path::at(qpc(box)); }

// Guards against rights that are swapped, or granted unasked.
TEST(DevxTransitions, InitCarriesRightsAndPort) {
  const ModifyQpMailbox box = make_reset_to_init(facts());
  EXPECT_EQ(In::opcode::get(box.data()), static_cast<unsigned>(prm::Opcode::rst2init_qp));
  EXPECT_EQ(In::qpn::get(box.data()), 0xabcdefu);
  EXPECT_EQ(Qp::rwe::get(qpc(box)), 1u);
  EXPECT_EQ(Qp::rre::get(qpc(box)), 0u);
  EXPECT_EQ(Qp::rae::get(qpc(box)), 1u);
  EXPECT_EQ(Qp::atomic_mode::get(qpc(box)), 1u);
  EXPECT_EQ(Path::vhca_port_num::get(path(box)), 2u);
  TransitionFacts none = facts();
  none.remote_access = Access::none;
  EXPECT_EQ(Qp::atomic_mode::get(qpc(make_reset_to_init(none))), 0u);
}

// Guards against initiator and responder, or the two PSNs, ending in each other's transition.
TEST(DevxTransitions, RtrCarriesTheResponderSide) {
  const ModifyQpMailbox box = make_init_to_rtr(facts(), plan(LinkLayer::infiniband));
  EXPECT_EQ(In::opcode::get(box.data()), static_cast<unsigned>(prm::Opcode::init2rtr_qp));
  EXPECT_EQ(Qp::mtu::get(qpc(box)), 4u);
  EXPECT_EQ(Qp::remote_qpn::get(qpc(box)), 0x00beefu);
  EXPECT_EQ(Qp::next_rcv_psn::get(qpc(box)), 0x123456u);
  EXPECT_EQ(Qp::log_rra_max::get(qpc(box)), 2u);
  EXPECT_EQ(Path::rlid::get(path(box)), 0x42u);
  EXPECT_EQ(Path::sl::get(path(box)), 5u);
  EXPECT_EQ(Path::grh::get(path(box)), 0u);
}

// Guards against an InfiniBand path on Ethernet: no MAC, no priority, the GRH bit set.
TEST(DevxTransitions, RtrOnEthernet) {
  const ModifyQpMailbox box = make_init_to_rtr(facts(), plan(LinkLayer::ethernet));
  EXPECT_EQ(Path::rmac_47_32::get(path(box)), 0x0211u);
  EXPECT_EQ(Path::rmac_31_0::get(path(box)), 0x22334455u);
  EXPECT_EQ(Path::eth_prio::get(path(box)), 5u);
  EXPECT_EQ(Path::dscp::get(path(box)), 0xb8u >> 2);
  EXPECT_EQ(Path::udp_sport::get(path(box)), 0xc123u);
  EXPECT_EQ(Path::src_addr_index::get(path(box)), 3u);
  EXPECT_EQ(Path::hop_limit::get(path(box)), 64u);
  EXPECT_EQ(Path::rgid_rip::at(path(box))[15], 16);
  EXPECT_EQ(Path::grh::get(path(box)), 0u);
  EXPECT_EQ(Path::rlid::get(path(box)), 0u);
}

// Guards against retries left at 0: the first lost packet would end the connection.
TEST(DevxTransitions, RtsCarriesTheRequesterSide) {
  const ModifyQpMailbox box = make_rtr_to_rts(facts(), plan(LinkLayer::infiniband));
  EXPECT_EQ(In::opcode::get(box.data()), static_cast<unsigned>(prm::Opcode::rtr2rts_qp));
  EXPECT_EQ(Qp::next_send_psn::get(qpc(box)), 0x654321u);
  EXPECT_EQ(Qp::log_sra_max::get(qpc(box)), 4u);
  EXPECT_EQ(Qp::retry_count::get(qpc(box)), 6u);
  EXPECT_EQ(Qp::rnr_retry::get(qpc(box)), 3u);
  EXPECT_EQ(Path::ack_timeout::get(path(box)), 17u);
}

// Guards against a depth that is rounded up above what the peer accepts.
TEST(DevxTransitions, DepthsRoundDown) {
  EXPECT_EQ(log_depth(0), 0);
  EXPECT_EQ(log_depth(1), 0);
  EXPECT_EQ(log_depth(16), 4);
  EXPECT_EQ(log_depth(31), 4);
  EXPECT_EQ(log_depth(255), 7);
}

}  // namespace
}  // namespace belfry::host
