// Queue pairs: creation, transitions, state, destruction.

#include "client.hpp"
#include "softnic/uverbs/qp_transition.hpp"

namespace belfry::softnic::test {
namespace {

constexpr std::uint32_t kAccess =
    kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;
constexpr std::uint32_t kInitMask = kQpState | kQpPkeyIndex | kQpPort | kQpAccess;
constexpr std::uint32_t kRtrMask =
    kQpState | kQpPath | kQpPathMtu | kQpDestination | kQpReceivePsn | kQpResponderDepth | kQpMinRnrTimer;
constexpr std::uint32_t kRtsMask =
    kQpState | kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpSendPsn | kQpInitiatorDepth;

/// A QP request that is right; tests change one thing of it.
struct QpCommand {
  explicit QpCommand(Client& on) : client(on), queues(3), record(1) {
    driver.buf_addr = queues.address();
    driver.db_addr = record.address();
    driver.sq_wqe_count = 128;  // 8 KiB
    driver.rq_wqe_count = 64;   // 4 KiB
    driver.rq_wqe_shift = 6;
    driver.flags = MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_SCATTER_CQE;
    driver.bfreg_index = client.uar();
    driver.uidx = 5;
    request.pd_handle = client.alloc_pd();
    request.send_cq_handle = client.create_cq(64).core_as<ib_uverbs_create_cq_resp>().cq_handle;
    request.recv_cq_handle = request.send_cq_handle;
    request.max_send_wr = 32;
    request.max_recv_wr = 64;
    request.max_send_sge = 4;
    request.max_recv_sge = 4;
    request.max_inline_data = 64;
    request.sq_sig_all = 1;
    request.qp_type = IB_UVERBS_QPT_RC;
  }
  Reply run() {
    return client.plain(IB_USER_VERBS_CMD_CREATE_QP, request,
                        {sizeof(ib_uverbs_create_qp_resp), sizeof(mlx5_ib_create_qp_resp)}, driver);
  }
  Client& client;
  Pages queues;
  Pages record;
  mlx5_ib_create_qp driver{};
  ib_uverbs_create_qp request{};
};

/// A QP and the requests that take it through its states.
class QpUnderTest {
 public:
  explicit QpUnderTest(Client& on) : client(on), command(on) {
    const Reply reply = command.run();
    EXPECT_EQ(reply.error, 0);
    response = reply.core_as<ib_uverbs_create_qp_resp>();
  }

  ib_uverbs_modify_qp request(std::uint32_t mask, QpState state) const {
    ib_uverbs_modify_qp r{};
    r.qp_handle = response.qp_handle;
    r.attr_mask = mask;
    r.qp_state = static_cast<std::uint8_t>(state);
    r.port_num = 1;
    r.qp_access_flags = kAccess;
    r.path_mtu = 3;
    r.dest_qp_num = response.qpn;
    r.rq_psn = 0x123456;
    r.sq_psn = 0x654321;
    r.max_rd_atomic = 8;
    r.max_dest_rd_atomic = 4;
    r.min_rnr_timer = 12;
    r.timeout = 14;
    r.retry_cnt = 7;
    r.rnr_retry = 6;
    r.dest.dlid = 1;
    r.dest.sl = 3;
    r.dest.port_num = 1;
    return r;
  }
  int modify(const ib_uverbs_modify_qp& r) const {
    return client.plain(IB_USER_VERBS_CMD_MODIFY_QP, r).error;
  }
  int modify(std::uint32_t mask, QpState state) const { return modify(request(mask, state)); }
  ib_uverbs_query_qp_resp query() const {
    ib_uverbs_query_qp r{};
    r.qp_handle = response.qp_handle;
    const Reply reply = client.plain(IB_USER_VERBS_CMD_QUERY_QP, r, {sizeof(ib_uverbs_query_qp_resp), 0});
    EXPECT_EQ(reply.error, 0);
    return reply.core_as<ib_uverbs_query_qp_resp>();
  }

  Client& client;
  ib_uverbs_create_qp_resp response{};
  QpCommand command;
};

// Guards against every field of the request that could make the NIC read or write elsewhere.
TEST(UverbsQp, BadRequestsAreRefused) {
  Opened client;
  const auto refused = [&](auto change) {
    QpCommand command(client);
    change(command);
    return command.run().error;
  };
  EXPECT_EQ(refused([](auto&) {}), 0);
  EXPECT_EQ(refused([](auto& c) { c.request.pd_handle = 9999; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.send_cq_handle = c.request.pd_handle; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.recv_cq_handle = 9999; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.is_srq = 1; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.qp_type = 1; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.qp_type = 200; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.qp_type = IB_UVERBS_QPT_UD; }), EOPNOTSUPP);
  EXPECT_EQ(refused([](auto& c) { c.request.qp_type = IB_UVERBS_QPT_XRC_INI; }), EOPNOTSUPP);
  EXPECT_EQ(refused([](auto& c) { c.request.max_send_wr = 32769; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.max_recv_wr = 32769; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.max_send_sge = 31; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.max_recv_sge = 33; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.request.max_inline_data = 4096; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.sq_wqe_count = 100; }), EINVAL);  // no power of two
  EXPECT_EQ(refused([](auto& c) { c.driver.sq_wqe_count = 1u << 31; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.rq_wqe_count = 1u << 31; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.rq_wqe_shift = 3; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.rq_wqe_shift = 60; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.sq_wqe_count = 256; }), EFAULT);  // runs over the buffer's end
  EXPECT_EQ(refused([](auto& c) { c.driver.buf_addr = kNowhere; }), EFAULT);
  EXPECT_EQ(refused([](auto& c) { c.driver.db_addr = kNowhere; }), EFAULT);
  EXPECT_EQ(refused([](auto& c) { c.driver.db_addr = c.record.address() + 4; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.bfreg_index = 0xfffff; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.flags = 0; }), EINVAL);  // no static register to fall back on
  EXPECT_EQ(refused([](auto& c) { c.driver.flags |= MLX5_QP_FLAG_TYPE_DCI; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.flags |= 1u << 30; }), EINVAL);
  EXPECT_EQ(refused([](auto& c) { c.driver.uidx = 1u << 24; }), EINVAL);
}

// Guards against capabilities that come back other than they were granted.
TEST(UverbsQp, AnswersItsCapacity) {
  Opened client;
  QpUnderTest qp(client);
  EXPECT_NE(qp.response.qpn, 0u);
  EXPECT_EQ(qp.response.max_send_wr, 32u);
  EXPECT_EQ(qp.response.max_recv_wr, 64u);
  EXPECT_EQ(qp.response.max_send_sge, 4u);
  EXPECT_EQ(qp.response.max_inline_data, 64u);
  const auto state = qp.query();
  EXPECT_EQ(state.qp_state, static_cast<std::uint8_t>(QpState::reset));
  EXPECT_EQ(state.max_recv_sge, 4u);
  EXPECT_EQ(state.sq_sig_all, 1);
}

// Guards against registers that are given to every QP: without dynamic UARs they are dealt out, and
// the library finds them by the index it is told.
TEST(UverbsQp, StaticRegistersAreDealtOut) {
  Client client;
  ASSERT_EQ(client.open_context(MLX5_LIB_CAP_4K_UAR).error, 0);
  std::vector<std::uint32_t> indices;
  for (int i = 0; i < 3; ++i) {
    QpCommand command(client);
    command.driver.flags = 0;
    const Reply reply = command.run();
    ASSERT_EQ(reply.error, 0);
    indices.push_back(reply.driver_as<mlx5_ib_create_qp_resp>().bfreg_index);
  }
  // Register 0 is left out; the library counts four to a page, two of them usable.
  EXPECT_EQ(indices, (std::vector<std::uint32_t>{1, 4, 5}));
}

// Guards against attributes lost between a modify and the NIC, or between the NIC and a query.
TEST(UverbsQp, WalksToReadyToSend) {
  Opened client;
  QpUnderTest qp(client);
  ASSERT_EQ(qp.modify(kInitMask, QpState::init), 0);
  ASSERT_EQ(qp.modify(kRtrMask, QpState::rtr), 0);
  ASSERT_EQ(qp.modify(kRtsMask, QpState::rts), 0);
  const auto s = qp.query();
  EXPECT_EQ(s.qp_state, static_cast<std::uint8_t>(QpState::rts));
  EXPECT_EQ(s.qp_access_flags, kAccess);
  EXPECT_EQ(s.path_mtu, 3);
  EXPECT_EQ(s.dest_qp_num, qp.response.qpn);
  EXPECT_EQ(s.rq_psn, 0x123456u);
  EXPECT_EQ(s.sq_psn, 0x654321u);
  EXPECT_EQ(s.max_rd_atomic, 8);
  EXPECT_EQ(s.max_dest_rd_atomic, 4);
  EXPECT_EQ(s.min_rnr_timer, 12);
  EXPECT_EQ(s.timeout, 14);
  EXPECT_EQ(s.retry_cnt, 7);
  EXPECT_EQ(s.rnr_retry, 6);
  EXPECT_EQ(s.port_num, 1);
  EXPECT_EQ(s.dest.dlid, 1);
  EXPECT_EQ(s.dest.sl, 3);
  ASSERT_EQ(qp.modify(kQpState, QpState::error), 0);
  EXPECT_EQ(qp.query().qp_state, static_cast<std::uint8_t>(QpState::error));
  ASSERT_EQ(qp.modify(kQpState, QpState::reset), 0);
  EXPECT_EQ(qp.query().qp_state, static_cast<std::uint8_t>(QpState::reset));
}

// Guards against shortcuts through the states, and attributes too many or too few: each required bit
// left out and each stray bit put in must fail, and the state must stay.
TEST(UverbsQp, EveryMissingOrStrayAttributeIsInvalid) {
  Opened client;
  QpUnderTest qp(client);
  struct Step {
    std::uint32_t mask;
    std::uint32_t optional;
    QpState to;
  };
  const Step steps[] = {
      {kInitMask, 0, QpState::init},
      {kRtrMask, kQpAccess | kQpPkeyIndex | kQpAlternatePath, QpState::rtr},
      {kRtsMask, kQpCurrentState | kQpAccess | kQpMinRnrTimer | kQpAlternatePath | kQpPathMigration,
       QpState::rts},
  };
  for (const Step& step : steps) {
    const auto before = qp.query().qp_state;
    for (std::uint32_t bit = 1; bit < 1u << 21; bit <<= 1) {
      if ((step.optional & bit) != 0) continue;
      EXPECT_EQ(qp.modify(step.mask ^ bit, step.to), EINVAL)
          << "to " << static_cast<int>(step.to) << " bit " << bit;
      ASSERT_EQ(qp.query().qp_state, before) << bit;
    }
    EXPECT_EQ(qp.modify(step.mask | 1u << 24, step.to), EOPNOTSUPP);
    ASSERT_EQ(qp.modify(step.mask, step.to), 0);
  }
}

// Guards against the table of transitions itself: these and no others, whatever the attributes.
TEST(UverbsQp, OnlyTheseTransitions) {
  using enum QpState;
  const std::pair<QpState, QpState> allowed[] = {{reset, init}, {init, init}, {init, rtr},
                                                 {rtr, rts},    {rts, rts},   {rts, sqd},
                                                 {sqd, rts},    {sqd, sqd},   {sqe, rts}};
  const auto possible = [](QpState from, QpState to) {
    // Some set of attributes must work if the transition exists: try what each one requires.
    for (const std::uint32_t mask : {kQpState | 0u, kInitMask, kRtrMask, kRtsMask}) {
      if (transition_allowed(from, to, mask)) return true;
    }
    return false;
  };
  for (int f = 0; f <= 6; ++f) {
    for (int t = 0; t <= 6; ++t) {
      const auto from = static_cast<QpState>(f);
      const auto to = static_cast<QpState>(t);
      const bool expected =
          to == reset || (to == error && from != reset) ||
          std::find(std::begin(allowed), std::end(allowed), std::pair(from, to)) != std::end(allowed);
      EXPECT_EQ(possible(from, to), expected) << f << " to " << t;
    }
  }
  EXPECT_FALSE(transition_allowed(init, rtr, kRtrMask | kQpCurrentState));
  EXPECT_TRUE(transition_allowed(rtr, rts, kRtsMask | kQpCurrentState));
  EXPECT_FALSE(transition_allowed(error, error, kQpState | kQpCurrentState));
}

// Guards against values that no device of this kind accepts.
TEST(UverbsQp, ValuesAreChecked) {
  Opened client;
  QpUnderTest qp(client);
  const auto refused = [&](std::uint32_t mask, QpState to, auto change) {
    ib_uverbs_modify_qp r = qp.request(mask, to);
    change(r);
    return qp.modify(r);
  };
  EXPECT_EQ(refused(kInitMask, QpState::init, [](auto& r) { r.port_num = 0; }), EINVAL);
  EXPECT_EQ(refused(kInitMask, QpState::init, [](auto& r) { r.port_num = 2; }), EINVAL);
  EXPECT_EQ(refused(kInitMask, QpState::init, [](auto& r) { r.pkey_index = 128; }), EINVAL);
  EXPECT_EQ(refused(kInitMask, QpState::init, [](auto& r) { r.qp_state = 7; }), EINVAL);
  EXPECT_EQ(refused(kInitMask, QpState::init, [](auto& r) { r.qp_handle = 9999; }), EINVAL);
  ASSERT_EQ(qp.modify(kInitMask, QpState::init), 0);
  EXPECT_EQ(refused(kRtrMask, QpState::rtr, [](auto& r) { r.path_mtu = 0; }), EINVAL);
  EXPECT_EQ(refused(kRtrMask, QpState::rtr, [](auto& r) { r.path_mtu = 6; }), EINVAL);
  EXPECT_EQ(refused(kRtrMask, QpState::rtr, [](auto& r) { r.max_dest_rd_atomic = 17; }), EINVAL);
  EXPECT_EQ(refused(kRtrMask, QpState::rtr, [](auto& r) { r.dest.is_global = 1, r.dest.sgid_index = 1; }),
            EINVAL);
  EXPECT_EQ(refused(kRtrMask | kQpAlternatePath, QpState::rtr, [](auto&) {}), EINVAL);
  ASSERT_EQ(qp.modify(kRtrMask, QpState::rtr), 0);
  EXPECT_EQ(refused(kRtsMask, QpState::rts, [](auto& r) { r.max_rd_atomic = 17; }), EINVAL);
  EXPECT_EQ(refused(kRtsMask | kQpCurrentState, QpState::rts, [](auto& r) { r.cur_qp_state = 9; }), EINVAL);
  ASSERT_EQ(qp.modify(kRtsMask, QpState::rts), 0);
}

// Guards against RoCE paths without a GID, which would have no address.
TEST(UverbsQp, EthernetPathsAreGlobal) {
  Opened client(quiet_config(LinkLayer::ethernet));
  QpUnderTest qp(client);
  ASSERT_EQ(qp.modify(kInitMask, QpState::init), 0);
  EXPECT_EQ(qp.modify(kRtrMask, QpState::rtr), EINVAL);
  ib_uverbs_modify_qp r = qp.request(kRtrMask, QpState::rtr);
  r.dest.is_global = 1;
  r.dest.sgid_index = 3;
  r.dest.traffic_class = 104;
  const Gid& gid = client.nic->device(0).gids[3].gid;
  std::memcpy(r.dest.dgid, gid.data(), gid.size());
  ASSERT_EQ(qp.modify(r), 0);
  const auto s = qp.query();
  EXPECT_EQ(s.dest.is_global, 1);
  EXPECT_EQ(s.dest.sgid_index, 3);
  EXPECT_EQ(s.dest.traffic_class, 104);
  EXPECT_EQ(std::memcmp(s.dest.dgid, gid.data(), gid.size()), 0);
}

// Guards against the extended forms drifting from the plain ones.
TEST(UverbsQp, ExtendedForms) {
  Opened client;
  QpCommand command(client);
  ib_uverbs_ex_create_qp request{};
  request.pd_handle = command.request.pd_handle;
  request.send_cq_handle = request.recv_cq_handle = command.request.send_cq_handle;
  request.max_send_wr = 16;
  request.max_send_sge = 1;
  request.qp_type = IB_UVERBS_QPT_RC;
  const auto create = [&] {
    return client.extended(IB_USER_VERBS_EX_CMD_CREATE_QP, request,
                           {sizeof(ib_uverbs_ex_create_qp_resp), sizeof(mlx5_ib_create_qp_resp)},
                           command.driver);
  };
  const Reply made = create();
  ASSERT_EQ(made.error, 0);
  request.create_flags = IB_UVERBS_QP_CREATE_SCATTER_FCS;
  EXPECT_EQ(create().error, EOPNOTSUPP);
  request.create_flags = 1;
  EXPECT_EQ(create().error, EINVAL);
  request.create_flags = 0;
  request.comp_mask = 2;
  EXPECT_EQ(create().error, EINVAL);

  ib_uverbs_ex_modify_qp modify{};
  modify.base.qp_handle = made.core_as<ib_uverbs_ex_create_qp_resp>().base.qp_handle;
  modify.base.attr_mask = kInitMask;
  modify.base.qp_state = static_cast<std::uint8_t>(QpState::init);
  modify.base.port_num = 1;
  const Room room{sizeof(ib_uverbs_ex_modify_qp_resp), sizeof(mlx5_ib_modify_qp_resp)};
  const Reply modified = client.extended(IB_USER_VERBS_EX_CMD_MODIFY_QP, modify, room);
  EXPECT_EQ(modified.error, 0);
  EXPECT_EQ(modified.core_as<ib_uverbs_ex_modify_qp_resp>().response_length, 8u);
  EXPECT_EQ(modified.driver_as<mlx5_ib_modify_qp_resp>().response_length, sizeof(mlx5_ib_modify_qp_resp));
  modify.base.attr_mask |= kQpRateLimit;
  EXPECT_EQ(client.extended(IB_USER_VERBS_EX_CMD_MODIFY_QP, modify, room).error, EINVAL);
  modify.base.attr_mask |= 1u << 30;
  EXPECT_EQ(client.extended(IB_USER_VERBS_EX_CMD_MODIFY_QP, modify, room).error, EOPNOTSUPP);
}

}  // namespace
}  // namespace belfry::softnic::test
