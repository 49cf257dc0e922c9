// Work that goes through: queues made by commands, rung through the mapped UAR, executed by the NIC,
// and the events that come of it.

#include <poll.h>
#include <sys/eventfd.h>

#include "belfry/wire/cqe.hpp"
#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/wqe.hpp"
#include "devx_client.hpp"
#include "softnic/uverbs/qp_transition.hpp"

namespace belfry::softnic::test {
namespace {

constexpr std::uint32_t kInitMask = kQpState | kQpPkeyIndex | kQpPort | kQpAccess;
constexpr std::uint32_t kRtrMask =
    kQpState | kQpPath | kQpPathMtu | kQpDestination | kQpReceivePsn | kQpResponderDepth | kQpMinRnrTimer;
constexpr std::uint32_t kRtsMask =
    kQpState | kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpSendPsn | kQpInitiatorDepth;

/// A DEVX QP connected to itself, and a send queue written by hand.
class Loop {
 public:
  explicit Loop(DevxClient& on, bool no_record = false) : client(on), queues(on), recordless(no_record) {
    cq = client.create(queues.cq_mailbox());
    Bytes in = queues.qp_mailbox(cq.object_id());
    if (no_record) {
      prm::QpContext::send_dbr_mode::set(
          prm::CreateQpIn::qpc::at(in.data()),
          static_cast<std::uint64_t>(prm::SendDoorbellMode::no_record_external));
    }
    qp = client.create(in);
    EXPECT_EQ(qp.error, 0);
    queues.connect(qp.handle, qp.object_id());
  }

  void arm() {
    auto* record = reinterpret_cast<wire::CqDoorbellRecord*>(queues.pages.data() + DevxQueues::kRecords);
    const std::uint32_t word = (++sequence & 3) << 28 | wire::kCqArmNext | consumed;
    record->arm.set(word);
    volatile auto* bell = reinterpret_cast<std::uint64_t*>(client.uar_page + wire::kUarCqDoorbell);
    *bell = wire::cq_arm_doorbell(word, cq.object_id());
    run();  // the NIC takes arming in before the completion
  }
  /// Posts one WQE with the given opcode and remote key, and rings.
  void post(wire::WqeOpcode opcode, std::uint64_t remote = 0, std::uint32_t rkey = 0,
            std::uint64_t value = 0) {
    std::byte* at = queues.pages.data() + DevxQueues::kSqOffset + (posted % 64) * wire::kBlockBytes;
    const std::uint32_t segments = opcode == wire::WqeOpcode::nop ? 1 : 3;
    const auto control =
        wire::make_control(opcode, posted, qp.object_id(), segments, wire::kWqeCompletionAlways);
    std::memcpy(at, &control, sizeof control);
    wire::RemoteAddressSegment target{};
    target.address.set(remote);
    target.rkey.set(rkey);
    std::memcpy(at + 16, &target, sizeof target);
    wire::InlineHeader header{};
    header.flag_byte_count.set(wire::kInlineFlag | 8);
    std::memcpy(at + 32, &header, sizeof header);
    std::memcpy(at + 36, &value, sizeof value);
    ++posted;
    if (!recordless) {
      auto* record =
          reinterpret_cast<wire::QpDoorbellRecord*>(queues.pages.data() + DevxQueues::kRecords + 64);
      record->send.set(posted & 0xffff);
    }
    volatile auto* bell = reinterpret_cast<std::uint64_t*>(client.uar_page + wire::kUarFirstRegister);
    *bell = wire::send_doorbell(Be32((posted & 0xffff) << 8), Be32(qp.object_id() << 8));
    run();
  }
  void run() {
    for (int i = 0; i < 200; ++i) client.nic->poll();
  }
  const wire::Cqe& entry(std::uint32_t index) const {
    return reinterpret_cast<const wire::Cqe*>(queues.pages.data())[index];
  }

  DevxClient& client;
  DevxQueues queues;
  DevxReply cq;
  DevxReply qp;
  bool recordless;
  std::uint32_t posted = 0;
  std::uint32_t consumed = 0;
  std::uint32_t sequence = 0;
};

bool readable(int descriptor) {
  pollfd p{descriptor, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

// Guards against any broken link of the whole chain: umem, mkey, CQ, QP, transitions, UAR mapping, both
// doorbell modes, user index in the completion.
TEST(UverbsTraffic, DevxQueuesExecuteWrites) {
  for (const bool no_record : {false, true}) {
    DevxClient client;
    Loop loop(client, no_record);
    const Pages target(1);
    const auto region = client
                            .reg_mr(loop.queues.pd_handle, target.address(), 4096,
                                    IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE)
                            .core_as<ib_uverbs_reg_mr_resp>();
    loop.post(wire::WqeOpcode::rdma_write, target.address() + 8, region.rkey, 0x1122334455667788);
    std::uint64_t arrived = 0;
    std::memcpy(&arrived, target.data() + 8, sizeof arrived);
    EXPECT_EQ(arrived, 0x1122334455667788u);
    EXPECT_EQ(loop.entry(0).opcode(), wire::CqeOpcode::requester);
    EXPECT_EQ(loop.entry(0).srqn_user_index.get() & 0xffffff, 0x31337u);
    EXPECT_EQ(loop.entry(0).wqe_counter.get(), 0);
  }
}

/// A DEVX event channel. \return its descriptor
int event_channel(Client& client, std::uint32_t flags) {
  Client::Attributes a;
  a.add(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, 0, 0)
      .add(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, flags, 4);
  EXPECT_EQ(client.ioctl(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, a), 0);
  const int descriptor = static_cast<int>(a.list[0].data);
  client.descriptors.push_back(descriptor);
  return descriptor;
}

int subscribe(Client& client, int channel, std::uint32_t object, std::uint16_t type, std::uint64_t cookie,
              int eventfd = -1) {
  Client::Attributes a;
  a.add(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, static_cast<std::uint64_t>(channel), 0)
      .add(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, object, 0)
      .add(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, type, 2)
      .add(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, cookie, 8);
  if (eventfd >= 0) a.add(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, static_cast<std::uint64_t>(eventfd), 4);
  return client.ioctl(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, a);
}

// Guards against DEVX completions that wake nobody, or somebody without an arm; cookie, entry and
// eventfd forms.
TEST(UverbsTraffic, DevxCompletionEvents) {
  DevxClient client;
  Loop loop(client);
  const int cookies = event_channel(client, MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
  const int entries = event_channel(client, 0);
  const int counter = ::eventfd(0, EFD_NONBLOCK);
  client.descriptors.push_back(counter);
  EXPECT_EQ(subscribe(client, cookies, loop.cq.handle, 0, 0xc00c1e), 0);
  EXPECT_EQ(subscribe(client, entries, loop.cq.handle, 0, 0xe47), 0);
  EXPECT_EQ(subscribe(client, entries, loop.cq.handle, 0, 0, counter), 0);
  EXPECT_EQ(subscribe(client, entries, loop.cq.handle, 0x77, 1), EINVAL);
  EXPECT_EQ(subscribe(client, entries, 9999, 0, 1), ENOENT);
  EXPECT_EQ(subscribe(client, 0, loop.cq.handle, 0, 1), EBADF);
  EXPECT_EQ(subscribe(client, client.create_channel(), loop.cq.handle, 0, 1), EBADF);
  EXPECT_EQ(subscribe(client, entries, loop.cq.handle, 0, 1, client.async_descriptor), EBADF);

  loop.post(wire::WqeOpcode::nop);
  EXPECT_FALSE(readable(cookies));  // not armed
  loop.consumed = loop.posted;
  loop.arm();
  loop.post(wire::WqeOpcode::nop);
  ASSERT_TRUE(readable(cookies));
  ASSERT_TRUE(readable(entries));
  ASSERT_TRUE(readable(counter));
  std::uint64_t cookie = 0;
  EXPECT_EQ(::read(cookies, &cookie, sizeof cookie), 8);
  EXPECT_EQ(cookie, 0xc00c1eu);
  std::uint8_t record[128] = {};
  EXPECT_EQ(::read(entries, record, sizeof record), 72);
  EXPECT_EQ(record[8 + 1], 0);  // type: completion
  EXPECT_EQ(Be32::from_raw(*reinterpret_cast<std::uint32_t*>(record + 8 + 32 + 24)).get(),
            loop.cq.object_id());
  loop.post(wire::WqeOpcode::nop);
  EXPECT_FALSE(readable(cookies));  // one arm, one event
  EXPECT_EQ(client.destroy_object(loop.qp.handle), 0);
  EXPECT_EQ(client.destroy_object(loop.cq.handle), 0);
}

// Guards against errors of DEVX queues that nobody hears of.
TEST(UverbsTraffic, DevxErrorEvents) {
  DevxClient client;
  Loop loop(client);
  const int channel = event_channel(client, MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x05, 0x10, 0x11})
    EXPECT_EQ(subscribe(client, channel, loop.qp.handle, type, type), 0);
  loop.post(wire::WqeOpcode::rdma_write, 0x1000, 0xdead00, 1);  // no such key: the responder refuses
  EXPECT_EQ(loop.entry(0).opcode(), wire::CqeOpcode::requester_error);
  EXPECT_TRUE(readable(channel));
}

// Guards against counts at the end of a verbs CQ or QP that differ from what the application has read:
// ibv_destroy_cq and ibv_destroy_qp would wait for ever.
TEST(UverbsTraffic, DestroyTellsTrueCounts) {
  DevxClient client;
  const int channel = client.create_channel();
  const Reply cq = client.create_cq(64, channel, 0xcccc);
  const Pages& ring = *client.memory.back();
  const auto cq_handle = cq.core_as<ib_uverbs_create_cq_resp>().cq_handle;
  const std::uint32_t cqn = cq.driver_as<mlx5_ib_create_cq_resp>().cqn;
  const auto qp = client.create_qp(client.alloc_pd(), cq_handle, 0x9999).core_as<ib_uverbs_create_qp_resp>();
  const Pages& queues = *client.memory.back();
  std::uint32_t sequence = 0;
  const auto arm = [&](std::uint32_t consumed) {
    const std::uint32_t word = (++sequence & 3) << 28 | wire::kCqArmNext | consumed;
    reinterpret_cast<wire::CqDoorbellRecord*>(ring.data())->arm.set(word);
    volatile auto* bell = reinterpret_cast<std::uint64_t*>(client.uar_page + wire::kUarCqDoorbell);
    *bell = wire::cq_arm_doorbell(word, cqn);
    for (int i = 0; i < 50; ++i) client.nic->poll();
  };
  for (const auto& [mask, state] : {std::pair{kInitMask, 1u}, {kRtrMask, 2u}, {kRtsMask, 3u}}) {
    ib_uverbs_modify_qp r{};
    r.qp_handle = qp.qp_handle;
    r.attr_mask = mask;
    r.qp_state = static_cast<std::uint8_t>(state);
    r.port_num = 1;
    r.path_mtu = 3;
    r.dest_qp_num = qp.qpn;
    r.dest.dlid = client.nic->device(0).lid;
    r.timeout = 14;
    r.retry_cnt = 7;
    ASSERT_EQ(client.plain(IB_USER_VERBS_CMD_MODIFY_QP, r).error, 0) << state;
  }
  arm(0);
  // A WRITE with a key that does not exist: an error completion, and errors of the QP.
  std::byte* block = queues.data() + 4096 + 64 * 16;  // the send queue lies behind 64 receive entries
  const auto control =
      wire::make_control(wire::WqeOpcode::rdma_write, 0, qp.qpn, 3, wire::kWqeCompletionAlways);
  std::memcpy(block, &control, sizeof control);
  std::memset(block + 16, 0, 48);
  reinterpret_cast<wire::InlineHeader*>(block + 32)->flag_byte_count.set(wire::kInlineFlag | 8);
  reinterpret_cast<wire::QpDoorbellRecord*>(queues.data())->send.set(1);
  volatile auto* bell = reinterpret_cast<std::uint64_t*>(client.uar_page + wire::kUarFirstRegister);
  *bell = wire::send_doorbell(Be32(1u << 8), Be32(qp.qpn << 8));
  for (int i = 0; i < 200; ++i) client.nic->poll();

  ASSERT_TRUE(readable(channel));
  std::uint64_t cq_read = 0;
  EXPECT_EQ(::read(channel, &cq_read, sizeof cq_read), 8);
  EXPECT_EQ(cq_read, 0xccccu);
  ASSERT_TRUE(readable(client.async_descriptor));
  ib_uverbs_async_event_desc event{};
  EXPECT_EQ(::read(client.async_descriptor, &event, sizeof event), 16);
  EXPECT_EQ(event.element, 0x9999u);

  ib_uverbs_destroy_qp_resp qp_gone{};
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DESTROY_QP, qp.qp_handle, &qp_gone), 0);
  EXPECT_EQ(qp_gone.events_reported, 1u);
  EXPECT_FALSE(readable(client.async_descriptor));  // whatever else there was went with the QP
  ib_uverbs_destroy_cq_resp cq_gone{};
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DESTROY_CQ, cq_handle, &cq_gone), 0);
  EXPECT_EQ(cq_gone.comp_events_reported, 1u);
  EXPECT_EQ(cq_gone.async_events_reported, 0u);
}

}  // namespace
}  // namespace belfry::softnic::test
