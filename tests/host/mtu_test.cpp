#include "belfry/host/mtu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "belfry/host/read_atomic.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::HasSubstr;

// Guards against using the interface's MTU as the path MTU: headers take 96 B of it.
TEST(Mtu, OfNetworkInterface) {
  EXPECT_EQ(path_mtu_of_netdev(1500), 1024u);
  EXPECT_EQ(path_mtu_of_netdev(2200), 2048u);
  EXPECT_EQ(path_mtu_of_netdev(4200), 4096u);
  EXPECT_EQ(path_mtu_of_netdev(9000), 4096u);
  EXPECT_EQ(path_mtu_of_netdev(4096 + 96), 4096u);
  EXPECT_EQ(path_mtu_of_netdev(4096 + 95), 2048u);
  EXPECT_EQ(path_mtu_of_netdev(256 + 96), 256u);
  EXPECT_EQ(path_mtu_of_netdev(256 + 95), 0u);
}

// Guards against one of the three bounds being ignored.
TEST(Mtu, SmallestBoundWins) {
  EXPECT_EQ(choose_mtu(4096, std::nullopt).bytes, 4096u);
  EXPECT_EQ(choose_mtu(4096, 1500).bytes, 1024u);
  EXPECT_EQ(choose_mtu(1024, 9000).bytes, 1024u);
  EXPECT_EQ(choose_mtu(4096, 4200, 2048).bytes, 2048u);
  EXPECT_EQ(choose_mtu(1024, std::nullopt, 4096).bytes, 1024u);
}

// Guards against a choice whose reason names the wrong bound.
TEST(Mtu, ReasonNamesTheBound) {
  EXPECT_THAT(choose_mtu(4096, 1500).reason, HasSubstr("network interface's MTU of 1500"));
  EXPECT_THAT(choose_mtu(2048, std::nullopt).reason, HasSubstr("active MTU"));
  EXPECT_THAT(choose_mtu(4096, std::nullopt, 512).reason, HasSubstr("requested"));
  EXPECT_THAT(choose_mtu(1024, std::nullopt, 4096).reason, HasSubstr("4096 is more than that"));
}

// Guards against an MTU code, or an odd size, being taken for bytes.
TEST(Mtu, RefusesWhatIsNoPathMtu) {
  expect_error(ErrorKind::bad_argument, [] { choose_mtu(5, std::nullopt); });
  expect_error(ErrorKind::bad_argument, [] { choose_mtu(4096, std::nullopt, 1500); });
  const Error small = expect_error(ErrorKind::unsupported, [] { choose_mtu(4096, 100); });
  EXPECT_THAT(small.what(), HasSubstr("ip link set"));
}

// Guards against each end using its own MTU: packets of the larger one are dropped silently.
TEST(Mtu, EndsTakeTheSmaller) {
  EXPECT_EQ(agree_mtu(4096, 1024).bytes, 1024u);
  EXPECT_EQ(agree_mtu(1024, 4096).bytes, 1024u);
  EXPECT_EQ(agree_mtu(2048, 2048).bytes, 2048u);
  EXPECT_THAT(agree_mtu(4096, 1024).reason, HasSubstr("the peer can do no more"));
}

// Guards against verbs codes being off by one.
TEST(Mtu, Codes) {
  EXPECT_EQ(mtu_code(256), 1);
  EXPECT_EQ(mtu_code(4096), 5);
  EXPECT_EQ(mtu_code(1500), 0);
  EXPECT_EQ(mtu_bytes(3), 1024u);
  EXPECT_EQ(mtu_bytes(0), 0u);
  EXPECT_EQ(mtu_bytes(6), 0u);
}

// Guards against reads being left at one in flight where the device offers sixteen.
TEST(ReadAtomicDepth, OffersTheDevicesLimit) {
  EXPECT_EQ(offer_read_atomic_depth(16, 16), (ReadAtomicDepth{16, 16}));
  EXPECT_EQ(offer_read_atomic_depth(-1, 1000), (ReadAtomicDepth{0, 255}));
}

// Guards against a requester sending more reads than the peer has resources for: it answers with a NAK.
TEST(ReadAtomicDepth, RequesterNeverExceedsThePeersResponder) {
  EXPECT_EQ(agree_read_atomic_depth({16, 16}, {16, 16}), (ReadAtomicDepth{16, 16}));
  EXPECT_EQ(agree_read_atomic_depth({16, 16}, {8, 4}), (ReadAtomicDepth{4, 8}));
  EXPECT_EQ(agree_read_atomic_depth({8, 4}, {16, 16}), (ReadAtomicDepth{8, 4}));
}

}  // namespace
}  // namespace belfry::host
