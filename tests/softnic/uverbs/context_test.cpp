// Contexts: what a file can do before, with and after one; attributes of device and port.

#include <fcntl.h>

#include "client.hpp"

namespace belfry::softnic::test {
namespace {

// Guards against use of a file whose context does not exist yet.
TEST(UverbsContext, NothingWorksBeforeIt) {
  Client client;
  EXPECT_EQ(client
                .plain(IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{},
                       {sizeof(ib_uverbs_query_device_resp), 0})
                .error,
            EINVAL);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, 0), EINVAL);
  Client::Attributes attributes;
  attributes.add(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, 0, 0);
  EXPECT_EQ(client.ioctl(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, attributes), EINVAL);
}

// Guards against a device that does not exist being opened.
TEST(UverbsContext, OnlyConfiguredDevicesOpen) {
  Client client;
  EXPECT_EQ(UverbsFile::open(*client.nic, 1).error(), ENODEV);
}

// Guards against a second context that would forget the first one's objects.
TEST(UverbsContext, OneAFile) {
  Opened client;
  EXPECT_EQ(client.open_context().error, EINVAL);
}

// Guards against limits that libmlx5 would size its queues by and the NIC would refuse.
TEST(UverbsContext, TellsLibmlx5TheLimits) {
  Client client;
  const Reply reply = client.open_context();
  ASSERT_EQ(reply.error, 0);
  const auto driver = reply.driver_as<mlx5_ib_alloc_ucontext_resp>();
  EXPECT_EQ(driver.response_length, sizeof driver);
  EXPECT_EQ(driver.tot_bfregs, 0u);  // UARs are objects
  EXPECT_EQ(driver.cqe_version, 1);
  EXPECT_EQ(driver.bf_reg_size, 512u);
  EXPECT_EQ(driver.max_send_wqebb, client.nic->config().limits.send_queue_blocks);
  EXPECT_EQ(driver.max_recv_wr, client.nic->config().limits.receive_entries);
  EXPECT_EQ(driver.log_uar_size, 12u);
  EXPECT_EQ(driver.num_uars_per_page, 1u);
  EXPECT_NE(::fcntl(client.async_descriptor, F_GETFD), -1);
}

// Guards against flags from the future being taken for granted.
TEST(UverbsContext, UnknownRequestsAreRefused) {
  Client client;
  EXPECT_EQ(client.open_context(MLX5_LIB_CAP_DYN_UAR, 1u << 5).error, EOPNOTSUPP);
  struct Tiny {
    std::uint32_t word[3];
  } tiny{};
  const Room room{sizeof(ib_uverbs_get_context_resp), sizeof(mlx5_ib_alloc_ucontext_resp)};
  EXPECT_EQ(client.plain(IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context{}, room, tiny).error, EINVAL);
  EXPECT_EQ(client.open_context().error, 0);  // the file is none the worse
}

// Guards against a context that survives a response that could not be written.
TEST(UverbsContext, FailedResponseLeavesNone) {
  Client client;
  mlx5_ib_alloc_ucontext_req_v2 driver{};
  driver.lib_caps = MLX5_LIB_CAP_DYN_UAR;
  ib_uverbs_get_context request{};
  request.response = kNowhere;
  const Room room{sizeof(ib_uverbs_get_context_resp), sizeof(mlx5_ib_alloc_ucontext_resp)};
  EXPECT_EQ(client.plain(IB_USER_VERBS_CMD_GET_CONTEXT, request, room, driver).error, EFAULT);
  EXPECT_EQ(client.open_context().error, 0);
}

// Guards against libraries without dynamic UARs: their registers lie at fixed offsets of the file.
TEST(UverbsContext, StaticRegistersAreMappable) {
  Client client;
  const Reply reply = client.open_context(MLX5_LIB_CAP_4K_UAR);
  ASSERT_EQ(reply.error, 0);
  EXPECT_EQ(reply.driver_as<mlx5_ib_alloc_ucontext_resp>().tot_bfregs, 16u);
  for (off_t page = 0; page < 8; ++page) {
    void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, client.file->fd(), page * 4096);
    ASSERT_NE(mapped, MAP_FAILED);
    *static_cast<volatile char*>(mapped) = 1;
    ::munmap(mapped, 4096);
  }
}

// Guards against numbers in ibv_devinfo that contradict the configuration.
TEST(UverbsContext, DeviceAttributesFollowTheConfiguration) {
  Config config = quiet_config();
  config.limits.qps = 128;
  config.limits.cq_entries = 4096;
  config.limits.read_atomic_depth = 4;
  Opened client(config);
  const Reply reply = client.plain(IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{},
                                   {sizeof(ib_uverbs_query_device_resp), 0});
  ASSERT_EQ(reply.error, 0);
  const auto device = reply.core_as<ib_uverbs_query_device_resp>();
  EXPECT_EQ(device.max_qp, 128u);
  EXPECT_EQ(device.max_cqe, 4095u);
  EXPECT_EQ(device.max_qp_rd_atom, 4u);
  EXPECT_EQ(device.max_qp_init_rd_atom, 4u);
  EXPECT_EQ(device.max_sge, 30u);
  EXPECT_EQ(device.vendor_id, 0x2c9u);
  EXPECT_EQ(device.vendor_part_id, 4129u);
  EXPECT_EQ(device.atomic_cap, 1u);
  EXPECT_EQ(device.phys_port_cnt, 1);
  const std::string version = std::to_string(device.fw_ver >> 32) + "." +
                              std::to_string(device.fw_ver >> 16 & 0xffff) + "." +
                              std::to_string(device.fw_ver & 0xffff);
  EXPECT_EQ(version, kFirmwareVersion);  // what sysfs says
  EXPECT_EQ(__builtin_bswap64(device.node_guid), client.nic->device(0).guid);

  const Reply more =
      client.extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, ib_uverbs_ex_query_device{},
                      {sizeof(ib_uverbs_ex_query_device_resp), sizeof(mlx5_ib_query_device_resp)});
  ASSERT_EQ(more.error, 0);
  const auto extended = more.core_as<ib_uverbs_ex_query_device_resp>();
  EXPECT_EQ(std::memcmp(&extended.base, &device, sizeof device), 0);
  EXPECT_EQ(extended.response_length, sizeof extended);
  // Nothing that the NIC does not execute: no packed, compressed or padded entries.
  const auto driver = more.driver_as<mlx5_ib_query_device_resp>();
  EXPECT_EQ(driver.mlx5_ib_support_multi_pkt_send_wqes, 0u);
  EXPECT_EQ(driver.cqe_comp_caps.max_num, 0u);
  EXPECT_EQ(driver.flags, 0u);
}

// Guards against a port that looks down, or an MTU that peers could not use.
TEST(UverbsContext, PortAttributesOfBothLinks) {
  for (const LinkLayer link : {LinkLayer::infiniband, LinkLayer::ethernet}) {
    Opened client(quiet_config(link));
    const DeviceIdentity& identity = client.nic->device(0);
    ib_uverbs_query_port request{};
    request.port_num = 1;
    const Room room{sizeof(ib_uverbs_query_port_resp), 0};
    const Reply reply = client.plain(IB_USER_VERBS_CMD_QUERY_PORT, request, room);
    ASSERT_EQ(reply.error, 0);
    const auto port = reply.core_as<ib_uverbs_query_port_resp>();
    EXPECT_EQ(port.state, 4);       // active
    EXPECT_EQ(port.phys_state, 5);  // link up
    EXPECT_EQ(port.lid, identity.lid);
    EXPECT_EQ(port.gid_tbl_len, identity.gids.size());
    EXPECT_EQ(128u << port.active_mtu, identity.active_mtu);
    EXPECT_EQ(port.link_layer, link == LinkLayer::ethernet ? 2 : 1);
    for (const int other : {0, 2, 255}) {
      request.port_num = static_cast<std::uint8_t>(other);
      EXPECT_EQ(client.plain(IB_USER_VERBS_CMD_QUERY_PORT, request, room).error, EINVAL);
    }
  }
}

}  // namespace
}  // namespace belfry::softnic::test
