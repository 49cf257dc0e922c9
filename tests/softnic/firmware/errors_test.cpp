/// \file
/// What the NIC refuses, with which syndrome, and what becomes of the queue afterwards.

#include <array>
#include <functional>

#include "softnic/firmware/rig.hpp"

namespace belfry::softnic::test {
namespace {

struct Refusal {
  wire::Syndrome syndrome;
  std::uint8_t vendor;
};

class Errors : public ::testing::TestWithParam<bool> {  // true: the direct path
 protected:
  void SetUp() override {
    config.seed = 3;
    config.direct_loopback = GetParam();
    hub = MemoryHub::create(256);
    nic = std::make_unique<Nic>(config, hub->open_port());
    ManualClock::install(*nic);
    connect_sides({}, {});
  }
  void connect_sides(const QpModify& extra_a, const QpModify& extra_b) {
    a = std::make_unique<Side>(*nic);
    b = std::make_unique<Side>(*nic);
    a->connect(*b, extra_a);
    b->connect(*a, extra_b);
    data = std::make_unique<Buffer>(8192);
    target = std::make_unique<Buffer>(8192);
    lkey = a->register_memory(*data);
    rkey = b->register_memory(*target);
  }

  void poll(int times = 400, std::uint64_t us = 50) {
    for (int i = 0; i < times; ++i) {
      nic->poll();
      ManualClock::advance_us(us);
    }
  }

  /// Expects one failed requester completion of the WQE at `block`.
  void expect_failure(std::uint64_t block, wire::Syndrome syndrome, std::uint8_t vendor) {
    wire::Cqe cqe;
    ASSERT_TRUE(a->poll_cq(cqe));
    wire::ErrorCqe error;
    std::memcpy(&error, &cqe, sizeof error);
    ASSERT_EQ(error.opcode(), wire::CqeOpcode::requester_error);
    EXPECT_EQ(error.syndrome, static_cast<std::uint8_t>(syndrome));
    EXPECT_EQ(error.vendor_syndrome, vendor);
    EXPECT_EQ(error.wqe_counter.get(), static_cast<std::uint16_t>(block));
    EXPECT_EQ(error.opcode_qpn.get() & 0xffffff, a->qpn);
    EXPECT_EQ(nic->query_qp(a->qpn)->state, QpState::error);
  }
  bool no_more() {
    wire::Cqe cqe;
    return !a->poll_cq(cqe);
  }

  Config config;
  std::shared_ptr<MemoryHub> hub;
  std::unique_ptr<Nic> nic;
  std::unique_ptr<Side> a, b;
  std::unique_ptr<Buffer> data, target;
  std::uint32_t lkey = 0, rkey = 0;
};

std::string path_name(const ::testing::TestParamInfo<bool>& p) { return p.param ? "direct" : "packets"; }
INSTANTIATE_TEST_SUITE_P(Paths, Errors, ::testing::Bool(), path_name);

// Field case 3. Fault: a root cause hidden by the flushes behind it, or flushes that never come.
TEST_P(Errors, TheThirdOfFiveWritesFailsAndTheRestIsFlushed) {
  std::uint64_t blocks[5];
  for (int i = 0; i < 5; ++i) {
    const std::uint32_t key = i == 2 ? rkey + 0x100 : rkey;
    blocks[i] = a->write({target->address(), key}, {data->address(), 8, lkey},
                         i == 2 ? 0 : wire::kWqeCompletionAlways);
  }
  a->ring();
  poll();
  wire::Cqe cqe;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(a->poll_cq(cqe));
    EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
  }
  expect_failure(blocks[2], wire::Syndrome::remote_access, 0x88);
  expect_failure(blocks[3], wire::Syndrome::flushed, 0xf9);
  expect_failure(blocks[4], wire::Syndrome::flushed, 0xf9);
  EXPECT_TRUE(no_more());
  // What is posted to a queue in error is flushed too.
  const auto late = a->write({target->address(), rkey}, {data->address(), 8, lkey});
  a->ring();
  poll(4);
  expect_failure(late, wire::Syndrome::flushed, 0xf9);
}

// Fault: a bound, key, right or PD that is not checked.
TEST_P(Errors, RemoteAccessViolationsAreRefusedAndMoveNothing) {
  auto foreign = std::make_unique<Side>(*nic);  // same NIC, another PD
  Buffer other(4096);
  const std::uint32_t foreign_key = foreign->register_memory(other);
  const std::uint32_t read_only = b->register_memory(*target, kAccessRemoteRead);
  const std::uint64_t end = target->address() + target->size();
  const Side::Remote cases[] = {
      {end - 7, rkey},                  // one byte too many
      {target->address() - 1, rkey},    // one byte too early
      {~0ull - 3, rkey},                // a sum that wraps
      {target->address(), rkey ^ 1},    // wrong variant
      {target->address(), 0},           //
      {target->address(), 0xffffff00},  // beyond the table
      {target->address(), read_only},   // no right to write
      {other.address(), foreign_key},   // another PD
  };
  std::memset(data->data(), 0x5a, 8);
  for (const Side::Remote& remote : cases) {
    const auto block = a->write(remote, {data->address(), 8, lkey});
    a->ring();
    poll();
    expect_failure(block, wire::Syndrome::remote_access, 0x88);
    EXPECT_EQ(target->data()[0], 0);
    ASSERT_EQ(b->sink.events.size(), 1u);
    EXPECT_EQ(b->sink.events[0], std::make_pair(AsyncEvent::qp_access_error, b->qpn));
    a.reset();
    b.reset();
    connect_sides({}, {});
  }
}

// Fault: a local key, bound or right that is not checked, or reported as a remote one.
TEST_P(Errors, LocalViolationsAreLocal) {
  struct Case {
    const char* what;
    std::function<std::uint64_t()> post;
    Refusal refusal;
  };
  const Case cases[] = {
      {"write from a bad key",
       [&] {
         return a->write({target->address(), rkey}, {data->address(), 8, lkey + 0x100});
       },
       {wire::Syndrome::local_protection, 0x52}},
      {"write past the end",
       [&] {
         return a->write({target->address(), rkey}, {data->address() + 8185, 8, lkey});
       },
       {wire::Syndrome::local_protection, 0x52}},
      {"read into memory without local write",
       [&] {
         const std::uint32_t key = a->register_memory(*data, kAccessRemoteRead);
         return a->read({target->address(), rkey}, {data->address(), 8, key});
       },
       {wire::Syndrome::local_protection, 0x52}},
      {"a count of 0 stands for 2^31 bytes",
       [&] {
         a->begin();
         a->put_remote({target->address(), rkey});
         a->put_sge({data->address(), 0, lkey});
         return a->finish(wire::WqeOpcode::rdma_write);
       },
       {wire::Syndrome::local_length, 0xd7}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const auto block = c.post();
    a->ring();
    poll();
    expect_failure(block, c.refusal.syndrome, c.refusal.vendor);
    EXPECT_EQ(nic->query_qp(b->qpn)->state, QpState::rts) << "the peer saw nothing";
    a.reset();
    b.reset();
    connect_sides({}, {});
  }
}

// Fault: nonsense in a WQE executed, or read past its end.
TEST_P(Errors, MalformedWqesAreLocalQueueErrors) {
  const auto expect_refused = [&](std::uint64_t block) {
    a->ring();
    poll();
    wire::Cqe cqe;
    ASSERT_TRUE(a->poll_cq(cqe));
    wire::ErrorCqe e;
    std::memcpy(&e, &cqe, sizeof e);
    EXPECT_EQ(e.opcode(), wire::CqeOpcode::requester_error);
    EXPECT_EQ(e.syndrome, static_cast<std::uint8_t>(wire::Syndrome::local_qp_operation));
    EXPECT_EQ(e.wqe_counter.get(), static_cast<std::uint16_t>(block));
    a.reset();
    b.reset();
    connect_sides({}, {});
  };
  a->begin();
  expect_refused(a->finish(static_cast<wire::WqeOpcode>(0x7f)));  // unknown opcode
  a->begin();
  expect_refused(a->finish(wire::WqeOpcode::rdma_write));  // no remote address
  a->begin();
  a->put_remote({target->address(), rkey});
  a->put(wire::InlineHeader{Be32(wire::kInlineFlag | 4000)});  // longer than the WQE
  a->put(std::array<unsigned char, 12>{});
  expect_refused(a->finish(wire::WqeOpcode::rdma_write));
  a->begin();
  a->put_remote({target->address(), rkey});
  a->put(wire::AtomicSegment{});
  a->put_sge({data->address(), 4, lkey});  // a fetch-add returns eight bytes
  expect_refused(a->finish(wire::WqeOpcode::atomic_fetch_add));
}

// Field case 4 on the NIC's side. Fault: 0x15 and 0x12 mixed up; a lost peer that hangs its partner.
TEST_P(Errors, AVanishedPeerEndsInRetryExceeded) {
  QpModify extra;
  extra.timeout = 1;
  extra.retry_count = 3;
  a.reset();
  b.reset();
  connect_sides(extra, {});
  const auto block = a->write({target->address(), rkey}, {data->address(), 8, lkey});
  const auto next = a->write({target->address(), rkey}, {data->address(), 8, lkey});
  nic->destroy_qp(b->qpn);
  a->ring();
  poll(100);
  EXPECT_TRUE(no_more()) << "retries take their time";
  poll(2000);
  expect_failure(block, wire::Syndrome::transport_retry_exceeded, 0x81);
  expect_failure(next, wire::Syndrome::flushed, 0xf9);
  EXPECT_GE(nic->impl().counters.timeouts, 4u);
}

// Fault: no receive posted ends at once, or never.
TEST_P(Errors, ReceiverNotReadyIsRetriedAsOftenAsAllowed) {
  QpModify extra;
  extra.rnr_retry = 2;
  a.reset();
  b.reset();
  connect_sides(extra, {});
  const auto block = a->send({data->address(), 8, lkey});
  a->ring();
  poll();
  expect_failure(block, wire::Syndrome::rnr_retry_exceeded, 0x87);
  EXPECT_EQ(nic->impl().counters.rnr_naks, 3u);
}

// Fault: a message longer than its receive overruns it, or fails on the wrong side only.
TEST_P(Errors, ATooSmallReceiveFailsOnBothSides) {
  b->post_receive({{target->address(), 100, rkey}});
  const auto block = a->send({data->address(), 101, lkey});
  a->ring();
  poll();
  expect_failure(block, wire::Syndrome::remote_invalid_request, 0x8a);
  wire::Cqe cqe;
  ASSERT_TRUE(b->poll_cq(cqe));
  wire::ErrorCqe e;
  std::memcpy(&e, &cqe, sizeof e);
  EXPECT_EQ(e.opcode(), wire::CqeOpcode::responder_error);
  EXPECT_EQ(e.syndrome, static_cast<std::uint8_t>(wire::Syndrome::local_length));
  EXPECT_EQ(target->data()[100], 0);
}

// Fault: a receive with a bad key takes the payload anyway.
TEST_P(Errors, AReceiveWithABadKeyIsAProtectionErrorThere) {
  b->post_receive({{target->address(), 100, rkey + 0x100}});
  const auto block = a->send({data->address(), 50, lkey});
  a->ring();
  poll();
  expect_failure(block, wire::Syndrome::remote_operation, 0x89);
  wire::Cqe cqe;
  ASSERT_TRUE(b->poll_cq(cqe));
  wire::ErrorCqe e;
  std::memcpy(&e, &cqe, sizeof e);
  EXPECT_EQ(e.syndrome, static_cast<std::uint8_t>(wire::Syndrome::local_protection));
}

// Fault: a QP's own access rights ignored because the key grants them.
TEST_P(Errors, TheQueuesRightsCountBesideTheKeys) {
  QpModify none;
  none.access = 0;
  ASSERT_EQ(nic->modify_qp(b->qpn, none), 0);
  const auto block = a->read({target->address(), rkey}, {data->address(), 8, lkey});
  a->ring();
  poll();
  expect_failure(block, wire::Syndrome::remote_access, 0x88);
}

// Fault: an atomic on a misaligned address tears.
TEST_P(Errors, AMisalignedAtomicIsAnInvalidRequest) {
  const auto block = a->fetch_add({target->address() + 4, rkey}, 1, {data->address(), 8, lkey});
  a->ring();
  poll();
  expect_failure(block, wire::Syndrome::remote_invalid_request, 0x8a);
  EXPECT_EQ(b->sink.events[0].first, AsyncEvent::qp_request_error);
}

// Fault: posted receives of a failed QP that never come back.
TEST_P(Errors, ReceivesOfAFailedQueueAreFlushed) {
  for (int i = 0; i < 3; ++i) b->post_receive({{target->address(), 64, rkey}});
  QpModify error;
  error.state = QpState::error;
  ASSERT_EQ(nic->modify_qp(b->qpn, error), 0);
  poll(2);
  b->post_receive({{target->address(), 64, rkey}});
  poll(2);
  for (int i = 0; i < 4; ++i) {
    wire::Cqe cqe;
    ASSERT_TRUE(b->poll_cq(cqe)) << i;
    wire::ErrorCqe e;
    std::memcpy(&e, &cqe, sizeof e);
    EXPECT_EQ(e.syndrome, static_cast<std::uint8_t>(wire::Syndrome::flushed));
    EXPECT_EQ(e.wqe_counter.get(), i);
  }
}

// Fault: the receive of a message whose sender died in its middle never comes back.
TEST_P(Errors, TheReceiveOfAnUnfinishedMessageIsFlushed) {
  Buffer big(1 << 20), room(1 << 20);
  const std::uint32_t big_key = a->register_memory(big);
  const std::uint32_t room_key = b->register_memory(room);
  b->post_receive({{room.address(), 1 << 20, room_key}});
  a->send({big.address(), 1 << 20, big_key});
  a->ring();
  nic->poll();
  nic->poll();
  QpModify error;
  error.state = QpState::error;
  ASSERT_EQ(nic->modify_qp(a->qpn, error), 0);
  ASSERT_EQ(nic->modify_qp(b->qpn, error), 0);
  poll(4);
  wire::Cqe cqe;
  ASSERT_TRUE(b->poll_cq(cqe));
  EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::responder_error);
  EXPECT_EQ(cqe.wqe_counter.get(), 0);
  EXPECT_FALSE(b->poll_cq(cqe));
}

// Fault: a key that is destroyed while a message comes goes on granting until the message ends.
TEST_P(Errors, AKeyDestroyedInMidMessageGrantsNothingMore) {
  Buffer big(4 << 20), room(4 << 20);
  const std::uint32_t big_key = a->register_memory(big);
  const std::uint32_t room_key = b->register_memory(room);
  std::memset(big.data(), 0x77, big.size());
  const auto block = a->write({room.address(), room_key}, {big.address(), 4 << 20, big_key});
  a->ring();
  nic->poll();
  nic->poll();
  ASSERT_EQ(nic->destroy_mkey(room_key), 0);
  std::memset(room.data(), 0, room.size());
  poll();
  expect_failure(block, wire::Syndrome::remote_access, 0x88);
  for (std::size_t i = 0; i < room.size(); i += 4096) ASSERT_EQ(room.data()[i], 0) << i;
}

// Fault: rights and lengths judged by what a WQE says now, and used for what it said when its message began:
// a READ that turned into a WRITE delivers into memory that no key opens for writing.
TEST_P(Errors, AWqeChangedInMidMessageFailsItsQueue) {
  struct Change {
    wire::WqeOpcode began, became;
    std::uint32_t bytes;
  };
  constexpr std::uint32_t kBytes = 4 << 20;
  for (const Change change : {Change{wire::WqeOpcode::rdma_read, wire::WqeOpcode::rdma_write, kBytes},
                              Change{wire::WqeOpcode::rdma_write, wire::WqeOpcode::rdma_read, kBytes},
                              Change{wire::WqeOpcode::rdma_write, wire::WqeOpcode::rdma_write, 64}}) {
    SCOPED_TRACE(static_cast<int>(change.became));
    connect_sides({}, {});
    Buffer big(kBytes), room(kBytes);
    const std::uint32_t big_key = a->register_memory(big);
    const std::uint32_t room_key = b->register_memory(room);
    a->begin();
    a->put_remote({room.address(), room_key});
    a->put_sge({big.address(), kBytes, big_key});
    const auto block = a->finish(change.began);
    a->ring();
    nic->poll();
    a->send_ring.data()[3] = static_cast<unsigned char>(change.became);
    a->send_ring.data()[32 + 2] = static_cast<unsigned char>(change.bytes >> 8);
    a->send_ring.data()[32 + 1] = static_cast<unsigned char>(change.bytes >> 16);
    a->send_ring.data()[32 + 3] = static_cast<unsigned char>(change.bytes);
    std::memset(big.data(), 0, kBytes);
    std::memset(room.data(), 0x33, kBytes);
    poll();
    expect_failure(block, wire::Syndrome::local_qp_operation, kVendorBadSize);
    if (change.became == wire::WqeOpcode::rdma_write) {
      EXPECT_EQ(big.data()[kBytes - 1], 0);
    }
    a.reset();
    b.reset();
  }
}

// Fault: a responder that was promised no READs answers them on one path and refuses them on the other.
TEST_P(Errors, AResponderOfDepthZeroRefusesReads) {
  a.reset();
  b.reset();
  QpModify none;
  none.responder_depth = 0;
  connect_sides({}, none);
  const auto block = a->read({target->address(), rkey}, {data->address(), 8, lkey});
  a->ring();
  poll();
  expect_failure(block, wire::Syndrome::remote_invalid_request, 0x8a);
}

// Fault: a draining queue that loses what was started, starts something new, or never says it is drained.
TEST_P(Errors, ADrainingQueueFinishesWhatItStarted) {
  Buffer big(1 << 20), room(1 << 20);
  const std::uint32_t big_key = a->register_memory(big);
  const std::uint32_t room_key = b->register_memory(room);
  a->write({room.address(), room_key}, {big.address(), 1 << 20, big_key});
  a->ring();
  nic->poll();
  QpModify drain;
  drain.state = QpState::sqd;
  drain.drained_event = true;
  ASSERT_EQ(nic->modify_qp(a->qpn, drain), 0);
  a->write({target->address(), rkey}, {data->address(), 8, lkey});
  a->ring();
  poll();
  wire::Cqe cqe;
  ASSERT_TRUE(a->poll_cq(cqe));
  EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
  EXPECT_FALSE(a->poll_cq(cqe)) << "nothing new starts";
  ASSERT_EQ(a->sink.events.size(), 1u);
  EXPECT_EQ(a->sink.events[0].first, AsyncEvent::sq_drained);
  QpModify go_on;
  go_on.state = QpState::rts;
  ASSERT_EQ(nic->modify_qp(a->qpn, go_on), 0);
  poll();
  EXPECT_TRUE(a->poll_cq(cqe));
}

// Fault: flushes that overrun a small CQ and destroy what was not yet read.
TEST_P(Errors, FlushesWaitForRoomInTheCompletionQueue) {
  Side::Options small;
  small.log_cq = 2;
  a = std::make_unique<Side>(*nic, small);
  a->connect(*b);
  QpModify error;
  error.state = QpState::error;
  for (int i = 0; i < 20; ++i) a->write({target->address(), rkey}, {data->address(), 8, lkey}, 0);
  ASSERT_EQ(nic->modify_qp(a->qpn, error), 0);
  a->ring();
  int seen = 0;
  for (int i = 0; i < 100; ++i) {
    poll(1);
    wire::Cqe cqe;
    while (a->poll_cq(cqe)) ++seen;
  }
  EXPECT_EQ(seen, 20);
  EXPECT_TRUE(a->sink.events.empty());
}

}  // namespace
}  // namespace belfry::softnic::test
