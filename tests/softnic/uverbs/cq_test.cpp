// Completion channels and completion queues.

#include <poll.h>

#include "client.hpp"

namespace belfry::softnic::test {
namespace {

/// A CQ request that is right; tests change one thing of it.
struct CqCommand {
  explicit CqCommand(Opened& on) : client(on), ring(8), record(1) {
    driver.buf_addr = ring.address();
    driver.db_addr = record.address();
    driver.cqe_size = 64;
    driver.flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
    driver.uar_page_index = static_cast<std::uint16_t>(client.uar());
    request.cqe = 127;
    request.comp_channel = -1;
  }
  Reply run() {
    return client.plain(IB_USER_VERBS_CMD_CREATE_CQ, request,
                        {sizeof(ib_uverbs_create_cq_resp), sizeof(mlx5_ib_create_cq_resp)}, driver);
  }
  Opened& client;
  Pages ring;
  Pages record;
  mlx5_ib_create_cq driver{};
  ib_uverbs_create_cq request{};
};

// Guards against a ring that is smaller than what was promised: the driver keeps one entry more.
TEST(UverbsCq, RoundsUp) {
  Opened client;
  for (const auto& [asked, got] : {std::pair{1u, 1u}, {2u, 3u}, {63u, 63u}, {64u, 127u}, {127u, 127u}}) {
    CqCommand command(client);
    command.request.cqe = asked;
    const Reply reply = command.run();
    ASSERT_EQ(reply.error, 0) << asked;
    EXPECT_EQ(reply.core_as<ib_uverbs_create_cq_resp>().cqe, got);
    EXPECT_NE(reply.driver_as<mlx5_ib_create_cq_resp>().cqn, 0u);
    EXPECT_EQ(client.destroy<ib_uverbs_destroy_cq_resp>(IB_USER_VERBS_CMD_DESTROY_CQ,
                                                        reply.core_as<ib_uverbs_create_cq_resp>().cq_handle),
              0);
  }
}

// Guards against every field of the request that could make the NIC write where it must not.
TEST(UverbsCq, BadRequestsAreRefused) {
  Opened client;
  const auto refused = [&](auto change) {
    CqCommand command(client);
    change(command);
    return command.run().error;
  };
  EXPECT_EQ(refused([](auto& c) { c.request.cqe = 0; }), EINVAL);
  EXPECT_EQ(refused([&](auto& c) { c.request.cqe = client.nic->config().limits.cq_entries; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.cqe = UINT32_MAX; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.comp_vector = 8; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.comp_channel = 9999; }), EBADF);
  EXPECT_EQ(refused([&](auto& c) { c.request.comp_channel = client.async_descriptor; }), EBADF);
  EXPECT_EQ(refused([](auto& c) { c.request.comp_channel = 0; }), EBADF);
  EXPECT_EQ(refused([](auto& c) { c.driver.cqe_size = 32; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.reserved0 = 1; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.flags |= 1u << 9; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.flags |= MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD; }), EOPNOTSUPP);
  EXPECT_EQ(refused([](auto& c) { c.driver.cqe_comp_en = 1; }), EOPNOTSUPP);
  EXPECT_EQ(refused([](auto& c) { c.driver.uar_page_index = 0xffff; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.flags = 0; }), EINVAL);  // no static register to fall back on
  EXPECT_EQ(refused([](auto& c) { c.driver.buf_addr = kNowhere; }), EFAULT);
  EXPECT_EQ(refused([](auto& c) { c.driver.buf_addr = c.ring.end() - 4096; }), EFAULT);
  EXPECT_EQ(refused([](auto& c) { c.driver.db_addr = kNowhere; }), EFAULT);
  EXPECT_EQ(refused([](auto& c) { c.driver.db_addr = c.record.address() + 4; }), EINVAL);
  EXPECT_EQ(refused([](auto&) {}), 0);
}

// Guards against a driver's request cut short.
TEST(UverbsCq, ShortDriverPartIsInvalid) {
  Opened client;
  const ib_uverbs_create_cq request{};
  struct {
    std::uint64_t word;
  } driver{};
  const Room room{sizeof(ib_uverbs_create_cq_resp), sizeof(mlx5_ib_create_cq_resp)};
  EXPECT_EQ(client.plain(IB_USER_VERBS_CMD_CREATE_CQ, request, room, driver).error, EINVAL);
}

// Guards against extended requests whose flags mean something that the NIC does not do.
TEST(UverbsCq, ExtendedFormAndItsFlags) {
  Opened client;
  CqCommand command(client);
  ib_uverbs_ex_create_cq request{};
  request.cqe = 64;
  request.comp_channel = -1;
  const auto run = [&] {
    return client.extended(IB_USER_VERBS_EX_CMD_CREATE_CQ, request,
                           {sizeof(ib_uverbs_ex_create_cq_resp), sizeof(mlx5_ib_create_cq_resp)},
                           command.driver);
  };
  request.flags = IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
  const Reply reply = run();
  ASSERT_EQ(reply.error, 0);
  EXPECT_EQ(reply.core_as<ib_uverbs_ex_create_cq_resp>().response_length,
            sizeof(ib_uverbs_ex_create_cq_resp));
  request.flags = IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
  EXPECT_EQ(run().error, EOPNOTSUPP);
  request.flags = 0;
  request.comp_mask = 1;
  EXPECT_EQ(run().error, EINVAL);
}

// Guards against a CQ that goes while a queue pair writes to it.
TEST(UverbsCq, InUseIsBusy) {
  Opened client;
  const std::uint32_t pd = client.alloc_pd();
  const std::uint32_t cq = client.create_cq(64).core_as<ib_uverbs_create_cq_resp>().cq_handle;
  const Reply qp = client.create_qp(pd, cq);
  ASSERT_EQ(qp.error, 0);
  ib_uverbs_destroy_cq_resp response{};
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DESTROY_CQ, cq, &response), EBUSY);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, pd), EBUSY);
  ib_uverbs_destroy_qp_resp gone{};
  EXPECT_EQ(
      client.destroy(IB_USER_VERBS_CMD_DESTROY_QP, qp.core_as<ib_uverbs_create_qp_resp>().qp_handle, &gone),
      0);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DESTROY_CQ, cq, &response), 0);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DESTROY_CQ, cq, &response), ENOENT);
}

// Guards against a resize into memory that is not there, or to entries of another size.
TEST(UverbsCq, ResizeIsChecked) {
  Opened client;
  CqCommand command(client);
  const Reply made = command.run();
  ASSERT_EQ(made.error, 0);
  const Pages larger(16);
  mlx5_ib_resize_cq driver{};
  driver.buf_addr = larger.address();
  driver.cqe_size = 64;
  ib_uverbs_resize_cq request{};
  request.cq_handle = made.core_as<ib_uverbs_create_cq_resp>().cq_handle;
  request.cqe = 500;
  const auto run = [&] {
    return client.plain(IB_USER_VERBS_CMD_RESIZE_CQ, request, {sizeof(ib_uverbs_resize_cq_resp), 0}, driver);
  };
  driver.cqe_size = 128;
  EXPECT_EQ(run().error, EINVAL);
  driver.cqe_size = 64;
  driver.buf_addr = kNowhere;
  EXPECT_EQ(run().error, EFAULT);
  driver.buf_addr = larger.address();
  request.cqe = UINT32_MAX;
  EXPECT_EQ(run().error, EINVAL);
  request.cqe = 500;
  const Reply resized = run();
  EXPECT_EQ(resized.error, 0);
  EXPECT_EQ(resized.core_as<ib_uverbs_resize_cq_resp>().cqe, 511u);
  request.cq_handle = 1000;
  EXPECT_EQ(run().error, EINVAL);
}

// Guards against a channel that dies with its number while CQs still report to it, and against the
// descriptor of another file being taken for one of ours.
TEST(UverbsCq, ChannelsBelongToTheirFile) {
  Opened client;
  Opened other(client);
  const int channel = client.create_channel();
  EXPECT_EQ(client.create_cq(64, channel).error, 0);
  EXPECT_EQ(other.create_cq(64, channel).error, EBADF);
  ib_uverbs_create_comp_channel request{};
  request.response = kNowhere;
  EXPECT_EQ(client.plain(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, request, {4, 0}).error, EFAULT);
}

// Guards against a file that is closed with everything still open: dependents must go first, and the
// NIC must hold nothing of it afterwards.
TEST(UverbsCq, ClosingTheFileFreesEverything) {
  Config config = quiet_config();
  config.limits.cqs = 2;
  config.limits.pds = 1;
  config.limits.mkeys = 1;
  Client keeper(config);
  const Pages pages(1);
  for (int round = 0; round < 3; ++round) {
    Opened client(keeper);
    const std::uint32_t pd = client.alloc_pd();
    ASSERT_EQ(client.reg_mr(pd, pages.address(), 64, IB_UVERBS_ACCESS_LOCAL_WRITE).error, 0);
    const Reply cq = client.create_cq(64, client.create_channel());
    ASSERT_EQ(cq.error, 0);
    ASSERT_EQ(client.create_cq(64).error, 0);
    ASSERT_EQ(client.create_cq(64).error, ENOMEM);
    ASSERT_EQ(client.create_qp(pd, cq.core_as<ib_uverbs_create_cq_resp>().cq_handle).error, 0);
  }
}

}  // namespace
}  // namespace belfry::softnic::test
