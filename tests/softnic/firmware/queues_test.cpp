/// \file
/// Rings, doorbells, records, completion queues and events at their edges.

#include <atomic>

#include "softnic/firmware/doorbell.hpp"
#include "softnic/firmware/rig.hpp"

namespace belfry::softnic::test {
namespace {

class Queues : public ::testing::Test {
 protected:
  Queues() {
    config.seed = 9;
    config.devices = 2;
    hub = MemoryHub::create(256);
    nic = std::make_unique<Nic>(config, hub->open_port());
    ManualClock::install(*nic);
  }
  void make(const Side::Options& oa, const Side::Options& ob = Side::Options{}) {
    a = std::make_unique<Side>(*nic, oa);
    b = std::make_unique<Side>(*nic, ob);
    a->connect(*b);
    b->connect(*a);
    data = std::make_unique<Buffer>(4096);
    target = std::make_unique<Buffer>(4096);
    lkey = a->register_memory(*data);
    rkey = b->register_memory(*target);
  }
  void poll(int times = 8) {
    for (int i = 0; i < times; ++i) {
      nic->poll();
      ManualClock::advance_us(20);
    }
  }
  int reap(Side& side) {
    wire::Cqe cqe;
    int n = 0;
    while (side.poll_cq(cqe)) ++n;
    return n;
  }
  std::uint64_t word() const { return *reinterpret_cast<const std::uint64_t*>(target->data()); }
  void post_value(std::uint64_t v, std::uint8_t flags = wire::kWqeCompletionAlways) {
    a->write_inline({target->address(), rkey}, &v, 8, flags);
  }

  Config config;
  std::shared_ptr<MemoryHub> hub;
  std::unique_ptr<Nic> nic;
  std::unique_ptr<Side> a, b;
  std::unique_ptr<Buffer> data, target;
  std::uint32_t lkey = 0, rkey = 0;
};

// Fault: the NIC loses its place where the 16-bit indices of records and CQEs wrap.
TEST_F(Queues, SixteenBitWrapsInBothDoorbellModes) {
  for (bool no_record : {false, true}) {
    Side::Options options;
    options.send_blocks = 16;
    options.no_record = no_record;
    make(options);
    for (std::uint64_t i = 1; i <= 140'000; ++i) {
      post_value(i);
      a->ring();
      poll(1);
      wire::Cqe cqe;
      ASSERT_TRUE(a->poll_cq(cqe)) << i;
      ASSERT_EQ(cqe.wqe_counter.get(), (i - 1) & 0xffff);
      ASSERT_EQ(word(), i);
    }
    a.reset();
    b.reset();
  }
}

// Fault: several QPs on one register lose a doorbell when one overwrites another's value.
TEST_F(Queues, SharedRegistersLoseNoDoorbell) {
  make(Side::Options{});
  Buffer records(4096), ring(64 * 64);
  QpAttributes attributes;
  attributes.pd = a->pd;
  attributes.send_queue = ring.data();
  attributes.send_blocks = 64;
  attributes.doorbell_record = records.data();
  attributes.uar = a->uar;
  attributes.send_cq = attributes.receive_cq = a->cqn;
  const std::uint32_t second = *nic->create_qp(attributes);
  QpModify rts;
  rts.state = QpState::rts;
  ASSERT_EQ(nic->modify_qp(second, rts), 0);
  const auto nop = wire::make_control(wire::WqeOpcode::nop, 0, second, 1, wire::kWqeCompletionAlways);
  std::memcpy(ring.data(), &nop, sizeof nop);
  // The second QP rings, the first one overwrites the register before the NIC looks.
  reinterpret_cast<std::uint32_t*>(records.data())[1] = Be32(1).raw();
  a->store_register(wire::send_doorbell(nop.opmod_index_opcode, nop.qpn_ds));
  post_value(5);
  a->ring();
  poll();
  EXPECT_EQ(reap(*a), 2);
  EXPECT_EQ(word(), 5u);
  EXPECT_EQ(nic->destroy_qp(second), 0);
}

// Fault: after a reset the first doorbell has the same value as one long ago and is not noticed.
TEST_F(Queues, AQueueThatWasResetRingsTheSameValueAgain) {
  make(Side::Options{});
  for (int round = 0; round < 3; ++round) {
    post_value(static_cast<std::uint64_t>(round) + 1);
    a->ring();
    poll();
    ASSERT_EQ(reap(*a), 1) << round;
    ASSERT_EQ(word(), static_cast<std::uint64_t>(round) + 1);
    QpModify reset;
    reset.state = QpState::reset;
    ASSERT_EQ(nic->modify_qp(a->qpn, reset), 0);
    ASSERT_EQ(nic->modify_qp(b->qpn, reset), 0);
    a->producer = 0;
    a->record_word(0).store(0);
    a->record_word(1).store(0);
    a->connect(*b);
    b->connect(*a);
  }
}

// Fault: a forked child rings the page that it shares, and its parent, ringing the same value, is not heard.
TEST_F(Queues, ADoorbellThatAnnouncedNothingDoesNotHideTheNextOne) {
  make(Side::Options{});
  post_value(1);
  a->store_register(wire::send_doorbell(a->last_control.opmod_index_opcode, a->last_control.qpn_ds));
  poll();  // rung, and nothing recorded
  EXPECT_EQ(reap(*a), 0);
  a->ring();
  poll();
  EXPECT_EQ(reap(*a), 1);
  EXPECT_EQ(word(), 1u);
}

// Fault: a doorbell that is rung just as the NIC takes a stale one away is taken for seen, and what it
// announces is started only with the next one.
TEST(Doorbells, OneRungDuringALookIsNotSeen) {
  std::uint64_t word = 8;
  EXPECT_EQ(seen_after_look(std::atomic_ref(word), 7, false), 7u);  // 7 was looked at, then 8 was rung
  EXPECT_EQ(word, 8u);
  EXPECT_EQ(seen_after_look(std::atomic_ref(word), 8, true), 8u);
  EXPECT_EQ(word, 8u);
  EXPECT_EQ(seen_after_look(std::atomic_ref(word), 8, false), 0u);
  EXPECT_EQ(word, 0u) << "a value that announced nothing must be a change when it is rung again";
}

// Fault: an index that claims more than the queue holds makes the NIC execute stale blocks.
TEST_F(Queues, ADoorbellBeyondTheRingIsNotBelieved) {
  Side::Options options;
  options.send_blocks = 16;
  options.no_record = true;
  make(options);
  const auto c = wire::make_control(wire::WqeOpcode::nop, 17, a->qpn, 0, 0);
  a->store_register(wire::send_doorbell(c.opmod_index_opcode, c.qpn_ds));
  poll();
  EXPECT_EQ(reap(*a), 0);
  EXPECT_EQ(nic->query_qp(a->qpn)->send_producer, 0u);
  post_value(3);
  a->ring();
  poll();
  EXPECT_EQ(reap(*a), 1);
  EXPECT_EQ(word(), 3u);
}

// Fault: record mode acts on the doorbell's index although the record says otherwise.
TEST_F(Queues, RecordModeFollowsTheRecord) {
  make(Side::Options{});
  post_value(1);
  post_value(2);
  a->record_word(1).store(Be32(1).raw());  // announces the first only
  a->store_register(wire::send_doorbell(a->last_control.opmod_index_opcode, a->last_control.qpn_ds));
  poll();
  EXPECT_EQ(reap(*a), 1);
  EXPECT_EQ(word(), 1u);
}

// Fault: a collapsed CQ that walks its ring.
TEST_F(Queues, ACollapsedQueueKeepsTheLastCompletionInEntryZero) {
  Side::Options options;
  options.collapsed = true;
  options.ignore_overrun = true;
  options.log_cq = 4;
  make(options);
  for (std::uint64_t i = 0; i < 100; ++i) {
    post_value(i);
    a->ring();
    poll(1);
    wire::Cqe cqe;
    std::memcpy(&cqe, a->cq_ring.data(), sizeof cqe);
    ASSERT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
    ASSERT_EQ(cqe.wqe_counter.get(), i);
  }
  EXPECT_EQ(a->cq_ring.data()[64 + 63], 0xf0) << "entry 1 was written";
}

// Fault: an overrun overwrites completions that nobody has read.
TEST_F(Queues, AnOverrunKillsTheQueueAndIsReported) {
  Side::Options options;
  options.log_cq = 2;
  make(options);
  for (std::uint64_t i = 0; i < 5; ++i) post_value(i);
  a->ring();
  poll();
  ASSERT_FALSE(a->sink.events.empty());
  EXPECT_EQ(a->sink.events[0], std::make_pair(AsyncEvent::cq_error, a->cqn));
  EXPECT_EQ(reap(*a), 4);
  EXPECT_EQ(nic->query_qp(a->qpn)->state, QpState::error);
}

// Fault: a QP that shares a dead CQ goes on, and its completions vanish.
TEST_F(Queues, EveryUserOfADeadCompletionQueueFails) {
  Side::Options options;
  options.log_cq = 2;
  make(options);
  QpAttributes attributes;
  attributes.pd = a->pd;
  attributes.send_queue = data->data();
  attributes.send_blocks = 16;
  attributes.doorbell_record = data->data() + 2048;
  attributes.uar = a->uar;
  attributes.send_cq = attributes.receive_cq = a->cqn;
  const std::uint32_t idle = *nic->create_qp(attributes);
  QpModify rts;
  rts.state = QpState::rts;
  ASSERT_EQ(nic->modify_qp(idle, rts), 0);
  for (std::uint64_t i = 0; i < 5; ++i) post_value(i);
  a->ring();
  poll();
  EXPECT_EQ(nic->query_qp(idle)->state, QpState::error);
  EXPECT_EQ(nic->destroy_qp(idle), 0);
}

// Fault: events lost between request and completion, or repeated for completions already reported.
TEST_F(Queues, AnArmedQueueReportsOncePerArm) {
  make(Side::Options{});
  auto& events = a->sink.completions;
  a->arm();
  poll();
  EXPECT_TRUE(events.empty());
  post_value(1);
  a->ring();
  poll();
  EXPECT_EQ(events.size(), 1u);
  a->arm();  // armed again before polling: the completion that is there was reported already
  poll();
  EXPECT_EQ(events.size(), 1u);
  post_value(2);
  post_value(2);
  a->ring();
  poll();
  EXPECT_EQ(events.size(), 2u) << "one arm, one event";
  reap(*a);
  a->arm();
  poll();
  EXPECT_EQ(events.size(), 2u) << "everything is consumed";
  post_value(3);
  a->ring();
  poll();
  EXPECT_EQ(events.size(), 3u);
  post_value(4);  // arrives while not armed
  a->ring();
  poll();
  EXPECT_EQ(events.size(), 3u);
  a->arm();  // one that was not reported is there: report at once
  poll();
  EXPECT_EQ(events.size(), 4u);
}

// Fault: "solicited only" fires for every completion, or not for errors.
TEST_F(Queues, SolicitedArmsIgnoreTheRest) {
  make(Side::Options{});
  auto& events = b->sink.completions;
  for (int i = 0; i < 4; ++i) b->post_receive({{target->address(), 64, rkey}});
  b->arm(true);
  a->send({data->address(), 8, lkey});
  a->ring();
  poll();
  EXPECT_TRUE(events.empty());
  a->send({data->address(), 8, lkey}, wire::kWqeCompletionAlways | wire::kWqeSolicited);
  a->ring();
  poll();
  EXPECT_EQ(events.size(), 1u);
  reap(*b);
  b->arm(true);
  QpModify error;
  error.state = QpState::error;
  nic->modify_qp(b->qpn, error);
  poll();
  EXPECT_EQ(events.size(), 2u) << "a failed completion always reports";
}

// Fault: objects destroyed under those that use them.
TEST_F(Queues, WhatIsInUseIsNotDestroyed) {
  make(Side::Options{});
  EXPECT_EQ(nic->destroy_cq(a->cqn), EBUSY);
  EXPECT_EQ(nic->dealloc_pd(a->pd), EBUSY);
  EXPECT_EQ(nic->detach_uar(a->uar), EBUSY);
  EXPECT_EQ(nic->destroy_qp(0xffffff), EINVAL);
  EXPECT_EQ(nic->destroy_mkey(0x100), EINVAL);
}

// Fault: attributes that make the NIC leave its rings.
TEST_F(Queues, BadAttributesAreRefused) {
  make(Side::Options{});
  QpAttributes q;
  q.pd = a->pd;
  q.uar = a->uar;
  q.send_cq = q.receive_cq = a->cqn;
  q.send_queue = a->send_ring.data();
  q.doorbell_record = a->records.data();
  for (std::uint32_t blocks : {3u, 65536u, 1u << 31}) {
    q.send_blocks = blocks;
    EXPECT_EQ(nic->create_qp(q).error(), EINVAL) << blocks;
  }
  q.send_blocks = 16;
  q.send_queue = a->send_ring.data() + 8;
  EXPECT_EQ(nic->create_qp(q).error(), EINVAL);
  q.send_queue = a->send_ring.data();
  q.receive_queue = a->receive_ring.data();
  q.receive_entries = 16;
  q.receive_stride = 8;
  EXPECT_EQ(nic->create_qp(q).error(), EINVAL);
  q.receive_entries = 0;
  q.doorbell_record = nullptr;
  EXPECT_EQ(nic->create_qp(q).error(), EINVAL) << "record mode without a record";
  q.doorbell_record = a->records.data();
  q.device = 1;
  EXPECT_EQ(nic->create_qp(q).error(), EINVAL) << "a PD of another device";

  QpModify m;
  m.path_mtu = 1000;
  EXPECT_EQ(nic->modify_qp(a->qpn, m), EINVAL);
  m = {};
  m.initiator_depth = 17;  // field case 16: the device's limit is 16
  EXPECT_EQ(nic->modify_qp(a->qpn, m), EINVAL);
  m = {};
  m.timeout = 32;
  EXPECT_EQ(nic->modify_qp(a->qpn, m), EINVAL);
}

// Fault: two devices of one NIC that cannot reach each other, or a packet for the wrong device taken.
TEST_F(Queues, DevicesOfOneProcessReachEachOtherByAddress) {
  Side::Options second;
  second.device = 1;
  make(Side::Options{}, second);
  post_value(42);
  a->ring();
  poll();
  EXPECT_EQ(reap(*a), 1);
  EXPECT_EQ(word(), 42u);
}

// Fault: completions that were in the old ring vanish with a resize.
TEST_F(Queues, AResizedQueueMarksTheEndOfItsOldRing) {
  make(Side::Options{});
  post_value(1);
  a->ring();
  poll();
  Buffer bigger(64 << 9);
  std::memset(bigger.data(), 0xf0, bigger.size());
  ASSERT_EQ(nic->resize_cq(a->cqn, bigger.data(), 9), 0);
  wire::Cqe cqe;
  ASSERT_TRUE(a->poll_cq(cqe));
  EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
  ASSERT_TRUE(a->poll_cq(cqe));
  EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::resize_cq);
  post_value(2);
  a->ring();
  poll();
  std::memcpy(&cqe, bigger.data() + 2 * 64, sizeof cqe);
  EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
  EXPECT_EQ(cqe.wqe_counter.get(), 1);
}

}  // namespace
}  // namespace belfry::softnic::test
