#include "softnic/identity.hpp"

#include <gtest/gtest.h>

#include <set>

namespace belfry::softnic {
namespace {

// Guards against a path MTU that forgets headers (1500 would give 1024 either way, 2200 and 4200 would
// not), and against a wrong side at each edge: 96 bytes of headers as the kernel counts them.
TEST(PathMtu, FollowsTheKernel) {
  EXPECT_EQ(path_mtu_of_netdev(1500), 1024u);
  EXPECT_EQ(path_mtu_of_netdev(2200), 2048u);
  EXPECT_EQ(path_mtu_of_netdev(4200), 4096u);
  EXPECT_EQ(path_mtu_of_netdev(9000), 4096u);
  for (const unsigned mtu : {256u, 512u, 1024u, 2048u, 4096u}) {
    EXPECT_EQ(path_mtu_of_netdev(mtu + 96), mtu);
    EXPECT_LT(path_mtu_of_netdev(mtu + 95), mtu);
  }
  EXPECT_EQ(path_mtu_of_netdev(351), 0u);
  EXPECT_EQ(path_mtu_of_netdev(0), 0u);
}

// Guards against two devices of a fabric sharing an address, and against LID 0, which means "none".
TEST(Identity, AddressesAreUniqueInTheFabric) {
  std::set<std::uint16_t> lids;
  std::set<std::uint64_t> guids;
  std::set<Gid> gids;
  for (unsigned node = 0; node < 256; ++node) {
    for (unsigned index = 0; index < 16; ++index) {
      Config config;
      config.node = node;
      const DeviceIdentity ib = identify(config, index);
      EXPECT_NE(ib.lid, 0);
      EXPECT_LT(ib.lid, 0xc000) << "multicast range";
      lids.insert(ib.lid);
      guids.insert(ib.guid);
      config.link = LinkLayer::ethernet;
      gids.insert(identify(config, index).gids[3].gid);
    }
  }
  EXPECT_EQ(lids.size(), 4096u);
  EXPECT_EQ(guids.size(), 4096u);
  EXPECT_EQ(gids.size(), 4096u);
}

// Guards against a GID that is not the port GUID behind the link-local prefix.
TEST(Identity, InfinibandPortHasOneGidOfItsGuid) {
  Config config;
  config.node = 3;
  const DeviceIdentity device = identify(config, 2);
  EXPECT_EQ(device.name, "mlx5_2");
  EXPECT_EQ(device.lid, 1 + 3 * 16 + 2);
  EXPECT_EQ(device.active_mtu, 4096u);
  EXPECT_EQ(device.netdev_mtu, 0u);
  ASSERT_EQ(device.gids.size(), 1u);
  EXPECT_EQ(device.gids[0].type, GidType::infiniband);
  EXPECT_EQ(device.gids[0].gid,
            (Gid{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0xbe, 0x1f, 0xff, 0xfe, 0x00, 3, 2}));
  EXPECT_EQ(device.guid, 0x00be1ffffe000302u);
}

// Guards against a GID table in another order than drivers fill it, on which GID choice depends.
TEST(Identity, EthernetPortHasFourGidsInTheDriversOrder) {
  Config config;
  config.link = LinkLayer::ethernet;
  config.node = 7;
  const DeviceIdentity device = identify(config, 1);
  EXPECT_EQ(device.lid, 0);
  EXPECT_EQ(device.netdev, "belfry1");
  EXPECT_EQ(device.netdev_mtu, 1500u);
  EXPECT_EQ(device.active_mtu, 1024u);
  EXPECT_EQ(device.mac[0] & 3, 2) << "locally administered, individual";
  ASSERT_EQ(device.gids.size(), 4u);
  const GidType types[] = {GidType::roce_v1, GidType::roce_v2, GidType::roce_v1, GidType::roce_v2};
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(device.gids[i].type, types[i]);
  EXPECT_EQ(device.gids[0].gid, device.gids[1].gid);
  EXPECT_EQ(device.gids[0].gid[0], 0xfe);
  EXPECT_EQ(device.gids[2].gid, device.gids[3].gid);
  EXPECT_EQ(device.gids[3].gid, (Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 66, 7, 2}));
}

}  // namespace
}  // namespace belfry::softnic
