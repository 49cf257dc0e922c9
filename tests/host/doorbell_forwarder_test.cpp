// Doorbells on their way through a CPU, and what device code is told when that way ends.

#include "host/doorbell_forwarder.hpp"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <thread>

#include "belfry/host/doorbell_path.hpp"
#include "device/fake_queue.hpp"

namespace belfry::host {
namespace {

using device::Announce;
using device::Fault;
using device::Outcome;
using device::Place;
using device::Status;
using device::Thread;
using device::test::FakeQueue;

constexpr port::Timeout kLong = port::Timeout::seconds(60);

/// Keeps what was rung.
class ListeningBell : public Bell {
 public:
  explicit ListeningBell(std::vector<std::pair<std::uint64_t*, std::uint64_t>>& rung) : rung_(rung) {}
  void ring(std::uint64_t* doorbell, std::uint64_t value) override { rung_.emplace_back(doorbell, value); }

 private:
  std::vector<std::pair<std::uint64_t*, std::uint64_t>>& rung_;
};

std::uint64_t bell_of(std::uint64_t producer, std::uint32_t qpn = 7) {
  return wire::send_doorbell(Be32(static_cast<std::uint32_t>(producer & 0xffff) << 8), Be32(qpn << 8));
}

// Fault: a queue's doorbell that goes to another's register, is rung twice, or not at all because an older
// one stood there; a doorbell of queue index 0 taken for none.
TEST(DoorbellRelay, RingsWhatIsNewestOnItsOwnRegister) {
  std::uint64_t words[3] = {};
  std::uint64_t registers[2] = {};
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> rung;
  ListeningBell bell(rung);
  DoorbellRelay relay(std::vector<DoorbellLine>{
      {&words[0], &registers[0]}, {&words[1], &registers[1]}, {&words[2], &registers[1]}});
  EXPECT_EQ(relay.relay(bell), 0u);
  words[0] = bell_of(1);
  words[0] = bell_of(5);  // overwritten before anybody looked
  words[2] = bell_of(0x10000, 9);
  EXPECT_EQ(relay.relay(bell), 2u);
  EXPECT_EQ(relay.relay(bell), 0u);
  words[0] = bell_of(6);
  words[1] = bell_of(1, 8);
  EXPECT_EQ(relay.relay(bell), 2u);
  const std::vector<std::pair<std::uint64_t*, std::uint64_t>> expected = {
      {&registers[0], bell_of(5)},
      {&registers[1], bell_of(0x10000, 9)},
      {&registers[0], bell_of(6)},
      {&registers[1], bell_of(1, 8)}};
  EXPECT_EQ(rung, expected);
}

// Fault: an index that has moved by a multiple of 2^16 between two looks, and looks as if it had not.
TEST(DoorbellRelay, TheGreatestStepOfAFullQueueIsSeen) {
  std::uint64_t word = 0;
  std::uint64_t doorbell = 0;
  RegisterBell bell;
  DoorbellRelay relay(std::vector<DoorbellLine>{{&word, &doorbell}});
  std::uint64_t producer = 0;
  for (int lap = 0; lap < 8; ++lap) {
    producer += wire::kMaxSendQueueBlocks;  // as far as a producer gets while nobody forwards
    word = bell_of(producer);
    ASSERT_EQ(relay.relay(bell), 1u) << lap;
    ASSERT_EQ(wire::doorbell_index(doorbell), static_cast<std::uint16_t>(producer));
  }
}

/// A fake queue whose doorbells a thread forwards to a register of the test.
template <class Policy>
struct Assisted {
  explicit Assisted(std::unique_ptr<Bell> bell = std::make_unique<RegisterBell>(), std::uint64_t stall_ns = 0,
                    IdlePolicy idle = {})
      : queue(device::test::make_queue<Policy>()) {
    words.stall_ns = stall_ns;
    queue.queues[1].forwarder = &words;
    thread = std::make_unique<DoorbellForwarder>(std::vector<DoorbellLine>{{&queue.doorbell, &nic_register}},
                                                 &words, std::move(bell), PollingOptions{.idle = idle});
  }
  /// Waits until the NIC has been told of all before `producer`.
  bool hears(std::uint64_t producer) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      const std::uint64_t value = port::load_acquire<port::Scope::system>(&nic_register);
      const auto ahead = static_cast<std::uint16_t>(wire::doorbell_index(value) - producer);
      if (value != 0 && ahead <= wire::kMaxSendQueueBlocks) return true;
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
  }

  FakeQueue queue;
  device::ForwarderWords words{};
  std::uint64_t nic_register = 0;
  std::unique_ptr<DoorbellForwarder> thread;
};

template <class Policy>
class Forwarding : public ::testing::Test {};
TYPED_TEST_SUITE(Forwarding, device::test::AllPolicies);

// Fault: device code that rings anything but the word, or a WQE that the NIC is told of before it is there.
TYPED_TEST(Forwarding, DoorbellsReachTheNicAndNothingElseChanges) {
  Assisted<TypeParam> assisted;
  FakeQueue& q = assisted.queue;
  device::gda::Channel<TypeParam> channel(q.view, 1);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto op = channel.put_value(Thread{}, Place{0, 0}, i);
    ASSERT_TRUE(op.ok());
    ASSERT_TRUE(assisted.hears(op.index + 1)) << i;
    EXPECT_EQ(wire::doorbell_qpn(assisted.nic_register), FakeQueue::kQpn);
    EXPECT_EQ(q.control(op.index).opmod_index_opcode.get() >> 8 & 0xffff, op.index);
    q.complete(op.index);
    ASSERT_TRUE(channel.wait(Thread{}, op, kLong).ok()) << i;
  }
  EXPECT_TRUE(assisted.thread->alive());
}

class DyingBell : public Bell {
 public:
  void ring(std::uint64_t*, std::uint64_t) override { throw std::runtime_error("the register is gone"); }
};

// Fault: a device thread that waits out its deadline, or for ever, for a NIC that nobody tells; one that is
// told of a full queue; a flush or a look at the queue's fault that says all is well.
TYPED_TEST(Forwarding, ADeadThreadIsATypedError) {
  Assisted<TypeParam> assisted(std::make_unique<DyingBell>());
  FakeQueue& q = assisted.queue;
  device::gda::Channel<TypeParam> channel(q.view, 1);
  const auto op = channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{1});
  ASSERT_TRUE(op.ok());
  const auto begin = std::chrono::steady_clock::now();
  const auto expect_lost = [](const Outcome& o) {
    EXPECT_EQ(o.status, Status::completion_error);
    EXPECT_EQ(o.syndrome, wire::Syndrome::none);
    EXPECT_EQ(o.fault.kind, Fault::Kind::worker_lost);
    EXPECT_EQ(o.fault.qpn, FakeQueue::kQpn);
  };
  const Outcome first = channel.wait(Thread{}, op, kLong);
  expect_lost(first);
  EXPECT_EQ(first.fault.index, op.index);
  EXPECT_EQ(channel.fault().kind, Fault::Kind::worker_lost);
  expect_lost(channel.flush(Thread{}, kLong));
  device::Operation full;
  for (int i = 0; i < 100 && full.ok(); ++i)
    full = channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{1}, Announce::now, kLong);
  EXPECT_EQ(full.status, Status::completion_error);
  expect_lost(channel.wait(Thread{}, full, kLong));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  while (assisted.thread->alive()) std::this_thread::yield();
  EXPECT_THROW(std::rethrow_exception(assisted.thread->failure()), std::runtime_error);
}

/// Holds the thread inside a doorbell until it is let go.
class StuckBell : public Bell {
 public:
  explicit StuckBell(std::atomic<bool>& go) : go_(go) {}
  void ring(std::uint64_t* doorbell, std::uint64_t value) override {
    while (!go_.load()) std::this_thread::yield();
    port::store_doorbell(doorbell, value);
  }

 private:
  std::atomic<bool>& go_;
};

// Fault: a thread that stands still taken for a NIC that is slow, for as long as the caller's patience; or
// one that was late held for dead once it goes on.
TYPED_TEST(Forwarding, AStalledThreadIsFoundAndForgiven) {
  std::atomic<bool> go{false};
  Assisted<TypeParam> assisted(std::make_unique<StuckBell>(go), 50'000'000);
  FakeQueue& q = assisted.queue;
  device::gda::Channel<TypeParam> channel(q.view, 1);
  const auto op = channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{1});
  const Outcome o = channel.wait(Thread{}, op, kLong);
  EXPECT_EQ(o.status, Status::completion_error);
  EXPECT_EQ(o.fault.kind, Fault::Kind::worker_lost);
  device::Operation full;
  for (int i = 0; i < 100 && full.ok(); ++i)
    full = channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{1}, Announce::now, kLong);
  EXPECT_EQ(full.status, Status::completion_error);
  EXPECT_EQ(channel.wait(Thread{}, full, kLong).fault.kind, Fault::Kind::worker_lost);
  go = true;
  ASSERT_TRUE(assisted.hears(op.index + 1));
  q.complete(op.index);
  EXPECT_TRUE(channel.wait(Thread{}, op, kLong).ok());
  EXPECT_EQ(channel.fault().kind, Fault::Kind::none);
}

// Fault: short calls, none of which lasts as long as a stall, that never find one, through one channel or
// many.
TYPED_TEST(Forwarding, ShortCallsFindAStalledThreadToo) {
  std::atomic<bool> go{false};
  Assisted<TypeParam> assisted(std::make_unique<StuckBell>(go), 50'000'000);
  FakeQueue& q = assisted.queue;
  const auto op =
      device::gda::Channel<TypeParam>(q.view, 1).put_value(Thread{}, Place{0, 0}, std::uint64_t{1});
  ASSERT_TRUE(op.ok());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  Outcome o;
  do {
    o = device::gda::Channel<TypeParam>(q.view, 1).test(op);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (o.status == Status::timed_out && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(o.status, Status::completion_error);
  EXPECT_EQ(o.fault.kind, Fault::Kind::worker_lost);
  go = true;
  ASSERT_TRUE(assisted.hears(op.index + 1));
  q.complete(op.index);
  // The heartbeat moves again.
  do {
    o = device::gda::Channel<TypeParam>(q.view, 1).test(op);
  } while (!o.ok() && std::chrono::steady_clock::now() < until);
  EXPECT_TRUE(o.ok());
}

// Fault: no stall limit taken for one that has passed; a heartbeat that stands while the thread has nothing
// to do, so that a silent NIC is taken for a lost thread.
TEST(ForwarderIdle, ASilentNicIsNotALostThread) {
  using Policy = device::test::Ring;
  for (const std::uint64_t stall_ns : {0u, 700'000'000u}) {
    Assisted<Policy> assisted(std::make_unique<RegisterBell>(), stall_ns, {.kind = IdlePolicy::Kind::sleep});
    device::gda::Channel<Policy> channel(assisted.queue.view, 1);
    const auto op = channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{1});
    EXPECT_EQ(channel.wait(Thread{}, op, port::Timeout::milliseconds(1000)).status, Status::timed_out);
  }
}

// Fault: an idle thread that does not notice the next doorbell, under each policy; a last doorbell that is
// not forwarded when the thread is told to end.
TEST(ForwarderIdle, DoorbellsComeThroughAfterAnyPause) {
  using Policy = device::test::Ring;
  for (const auto kind : {IdlePolicy::Kind::spin, IdlePolicy::Kind::yield, IdlePolicy::Kind::sleep}) {
    Assisted<Policy> assisted(
        std::make_unique<RegisterBell>(), 0,
        {.kind = kind, .spins = 10, .yields = 10, .longest = std::chrono::microseconds(500)});
    device::gda::Channel<Policy> channel(assisted.queue.view, 1);
    for (std::uint64_t i = 0; i < 12; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(i % 4));
      ASSERT_TRUE(channel.put_value(Thread{}, Place{0, 0}, i).ok());
      ASSERT_TRUE(assisted.hears(i + 1));
    }
    ASSERT_TRUE(channel.put_value(Thread{}, Place{0, 0}, std::uint64_t{12}).ok());
    assisted.thread.reset();
    EXPECT_EQ(wire::doorbell_index(assisted.nic_register), 13u);
  }
}

// Field case 17. Fault: a refusal of which nobody says what it means and what to do.
TEST(RegisterRefused, NamesTheResultAndTheRemedy) {
  const Error refused = register_refused(800);
  EXPECT_EQ(refused.kind(), ErrorKind::unsupported);
  EXPECT_NE(refused.message().find("800 (CUDA_ERROR_NOT_PERMITTED)"), std::string::npos);
  EXPECT_NE(refused.remedy().find("PeerMappingOverride=1"), std::string::npos);
  EXPECT_NE(register_refused(1).message().find("fails with 1"), std::string::npos);
}

}  // namespace
}  // namespace belfry::host
