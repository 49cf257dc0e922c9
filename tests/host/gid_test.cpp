#include "belfry/host/gid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "belfry/host/errors.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::HasSubstr;

Gid link_local() { return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 1}; }
Gid ipv4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }
Gid global_ipv6() { return {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}; }

GidEntry entry(int index, Gid gid, GidType type, bool readable = true) {
  return {index, gid, type, readable, "eth0"};
}

std::vector<GidEntry> usual_table() {
  return {entry(0, link_local(), GidType::roce_v1), entry(1, link_local(), GidType::roce_v2),
          entry(2, ipv4(1), GidType::roce_v1), entry(3, ipv4(1), GidType::roce_v2)};
}

// Guards against taking index 0 on RoCE, which is link-local v1 and does not cross routers.
TEST(Gid, PrefersRoceV2WithIpv4) {
  const GidChoice choice = choose_gid(LinkLayer::ethernet, usual_table());
  EXPECT_EQ(choice.entry.index, 3);
  EXPECT_THAT(choice.reason, HasSubstr("GID index 3"));
  EXPECT_THAT(choice.reason, HasSubstr("10.0.0.1"));
  EXPECT_THAT(choice.reason, HasSubstr("RoCE v2"));
  EXPECT_THAT(choice.reason, HasSubstr("IPv4"));
}

// Guards against choosing an empty or unreadable slot, which then fails in modify_qp.
TEST(Gid, SkipsEmptyAndUnreadableEntries) {
  auto table = usual_table();
  table[3].readable = false;
  table.push_back(entry(4, Gid{}, GidType::roce_v2));
  table.push_back(entry(5, ipv4(2), GidType::roce_v2));
  EXPECT_EQ(choose_gid(LinkLayer::ethernet, table).entry.index, 5);
}

// Guards against an order of preference that puts a link-local or v1 entry before a routable one.
TEST(Gid, FallsBackInOrder) {
  std::vector<GidEntry> table = {entry(0, ipv4(1), GidType::roce_v1),
                                 entry(1, link_local(), GidType::roce_v2),
                                 entry(2, global_ipv6(), GidType::roce_v2)};
  EXPECT_EQ(choose_gid(LinkLayer::ethernet, table).entry.index, 2);
  table.pop_back();
  EXPECT_EQ(choose_gid(LinkLayer::ethernet, table).entry.index, 1);
  table.pop_back();
  const GidChoice v1 = choose_gid(LinkLayer::ethernet, table);
  EXPECT_EQ(v1.entry.index, 0);
  EXPECT_THAT(v1.reason, HasSubstr("RoCE v1"));
}

// Guards against the last of equal entries winning: the choice must not depend on the table's length.
TEST(Gid, FirstOfEqualsWins) {
  const std::vector<GidEntry> table = {entry(0, ipv4(1), GidType::roce_v2),
                                       entry(1, ipv4(2), GidType::roce_v2)};
  EXPECT_EQ(choose_gid(LinkLayer::ethernet, table).entry.index, 0);
}

// Guards against RoCE preferences being applied to InfiniBand, where index 0 names the port.
TEST(Gid, InfiniBandTakesIndexZero) {
  const std::vector<GidEntry> table = {entry(0, link_local(), GidType::infiniband),
                                       entry(1, global_ipv6(), GidType::infiniband)};
  const GidChoice choice = choose_gid(LinkLayer::infiniband, table);
  EXPECT_EQ(choice.entry.index, 0);
  EXPECT_THAT(choice.reason, HasSubstr("LID"));
}

// Guards against an override being ignored, or taken without a look at what it names.
TEST(Gid, OverrideIsObeyedAndChecked) {
  auto table = usual_table();
  EXPECT_EQ(choose_gid(LinkLayer::ethernet, table, 1).entry.index, 1);
  EXPECT_THAT(choose_gid(LinkLayer::ethernet, table, 1).reason, HasSubstr("requested"));
  table[1].readable = false;
  const Error unreadable =
      expect_error(ErrorKind::bad_argument, [&] { choose_gid(LinkLayer::ethernet, table, 1); });
  EXPECT_THAT(unreadable.what(), HasSubstr("cannot be read"));
  EXPECT_THAT(unreadable.what(), HasSubstr("3 (10.0.0.1, RoCE v2)"));
  const Error missing =
      expect_error(ErrorKind::bad_argument, [&] { choose_gid(LinkLayer::ethernet, table, 9); });
  EXPECT_THAT(missing.what(), HasSubstr("BELFRY_GID_INDEX"));
}

// Guards against a crash or a silent index 0 where a RoCE interface has no address at all.
TEST(Gid, NothingUsableNamesTheRemedy) {
  const std::vector<GidEntry> table = {entry(0, Gid{}, GidType::roce_v2),
                                       entry(1, ipv4(1), GidType::roce_v2, false)};
  const Error error = expect_error(ErrorKind::unsupported, [&] { choose_gid(LinkLayer::ethernet, table); });
  EXPECT_THAT(error.what(), HasSubstr("ip addr add"));
  expect_error(ErrorKind::unsupported, [] { choose_gid(LinkLayer::infiniband, {}); });
}

// Guards against ::ffff:a.b.c.d being taken for a global IPv6 address, or fe80 for one.
TEST(Gid, Scopes) {
  EXPECT_EQ(scope_of(Gid{}), GidScope::empty);
  EXPECT_EQ(scope_of(link_local()), GidScope::link_local);
  EXPECT_EQ(scope_of(ipv4(1)), GidScope::ipv4);
  EXPECT_EQ(scope_of(global_ipv6()), GidScope::global);
  EXPECT_EQ(format_gid(global_ipv6()), "2001:db8::7");
}

}  // namespace
}  // namespace belfry::host
