#include "belfry/host/connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

QueueAddress infiniband(std::uint16_t lid) {
  QueueAddress a;
  a.qpn = 0x123456;
  a.psn = 0xabcdef;
  a.lid = lid;
  a.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  a.path_mtu = 4096;
  a.depth = {16, 16};
  return a;
}

QueueAddress roce(std::uint8_t host, GidType type = GidType::roce_v2) {
  QueueAddress a = infiniband(0);
  a.link = LinkLayer::ethernet;
  a.gid_type = type;
  a.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host};
  return a;
}

// Guards against a field that is lost, or lands in another's place, on the way to the peer.
TEST(QueueAddress, SurvivesTheWire) {
  QueueAddress a = roce(7);
  a.lid = 0x1122;
  a.path_mtu = 2048;
  a.depth = {3, 9};
  EXPECT_EQ(QueueAddress::decode(a.encode()), a);
  EXPECT_EQ(QueueAddress::decode(infiniband(5).encode()), infiniband(5));
}

// Guards against a peer's garbage being programmed into a QP.
TEST(QueueAddress, RefusesGarbage) {
  const auto good = infiniband(1).encode();
  expect_error(ErrorKind::bad_argument, [&] { QueueAddress::decode(std::span(good).first(39)); });
  expect_error(ErrorKind::bad_argument, [&] { QueueAddress::decode(QueueAddress::Encoded{}); });
  for (const std::size_t byte : {0u, 4u, 6u, 7u, 8u, 12u, 18u}) {
    auto bad = good;
    bad[byte] = std::byte{0xff};
    expect_error(ErrorKind::bad_argument, [&] { QueueAddress::decode(bad); });
  }
}

// Guards against ends that disagree about MTU or depths.
TEST(ConnectionPlan, AgreesWithTheOtherEnd) {
  QueueAddress a = infiniband(1);
  QueueAddress b = infiniband(2);
  b.path_mtu = 1024;
  b.depth = {4, 8};
  const ConnectionPlan at_a = plan_connection(a, b, {});
  const ConnectionPlan at_b = plan_connection(b, a, {});
  EXPECT_EQ(at_a.path_mtu, 1024u);
  EXPECT_EQ(at_b.path_mtu, 1024u);
  EXPECT_EQ(at_a.depth.initiator, at_b.depth.responder);
  EXPECT_EQ(at_a.depth.responder, at_b.depth.initiator);
  EXPECT_EQ(at_a.depth, (ReadAtomicDepth{8, 4}));
  EXPECT_THAT(at_a.decisions, Contains(HasSubstr("path MTU 1024")));
}

// Guards against a GRH left out on Ethernet or across subnets, or added within one.
TEST(ConnectionPlan, GlobalRouting) {
  EXPECT_FALSE(plan_connection(infiniband(1), infiniband(2), {}).global);
  QueueAddress elsewhere = infiniband(2);
  elsewhere.gid[7] = 9;
  EXPECT_TRUE(plan_connection(infiniband(1), elsewhere, {}).global);
  EXPECT_TRUE(plan_connection(roce(1), roce(2), {}).global);
}

// Guards against pairs that can never talk being connected, to end in silent time-outs.
TEST(ConnectionPlan, RefusesPairsThatCannotTalk) {
  expect_error(ErrorKind::not_reachable, [] { plan_connection(infiniband(1), roce(2), {}); });
  EXPECT_THAT(
      expect_error(ErrorKind::not_reachable, [] { plan_connection(roce(1), roce(2, GidType::roce_v1), {}); })
          .what(),
      AllOf(HasSubstr("RoCE v1"), HasSubstr("BELFRY_GID_INDEX")));
  QueueAddress v6 = roce(2);
  v6.gid = {0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  expect_error(ErrorKind::not_reachable, [&] { plan_connection(roce(1), v6, {}); });
  expect_error(ErrorKind::not_reachable, [] { plan_connection(infiniband(0), infiniband(2), {}); });
  expect_error(ErrorKind::not_reachable, [] { plan_connection(infiniband(1), infiniband(0), {}); });
}

// Guards against out-of-range wishes being cut to the width of a field.
TEST(ConnectionPlan, ChecksParameters) {
  const auto refuse = [](auto change, const QueueAddress& a, const QueueAddress& b) {
    ConnectionParameters p;
    change(p);
    expect_error(ErrorKind::bad_argument, [&] { plan_connection(a, b, p); });
  };
  refuse([](auto& p) { p.ack_timeout = 32; }, infiniband(1), infiniband(2));
  refuse([](auto& p) { p.retry_count = 8; }, infiniband(1), infiniband(2));
  refuse([](auto& p) { p.rnr_retry = 8; }, infiniband(1), infiniband(2));
  refuse([](auto& p) { p.min_rnr_timer = 32; }, infiniband(1), infiniband(2));
  refuse([](auto& p) { p.service_level = 16; }, infiniband(1), infiniband(2));
  refuse([](auto& p) { p.service_level = 8; }, roce(1), roce(2));
  refuse([](auto& p) { p.flow_label = 0x100000; }, roce(1), roce(2));
}

// Guards against every QP starting at one PSN, which lets a stale packet of an old connection in.
TEST(Psn, IsRandomAndFits) {
  bool differ = false;
  const std::uint32_t first = random_psn();
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t psn = random_psn();
    EXPECT_LE(psn, 0xffffffu);
    differ = differ || psn != first;
  }
  EXPECT_TRUE(differ);
}

}  // namespace
}  // namespace belfry::host
