/// \file
/// Workers as threads: rings shared with a producer that runs at the same time, and workers that end badly.

#include "proxy/worker.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "belfry/proxy/idle.hpp"
#include "proxy/rig.hpp"

namespace belfry::proxy::test {
namespace {

/// What a NIC was given; it outlives the NIC, which goes with its worker.
struct Given {
  std::uint64_t next = 0;
  bool in_order = true;
};

/// Pauses of every length: most calls none, some a few turns, a few the rest of a time slice.
class Delays {
 public:
  explicit Delays(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  void pause() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    if ((state_ & 63) != 0) return;
    for (std::uint64_t turns = state_ >> 6 & 127; turns != 0; --turns) port::pause_lane();
    if ((state_ >> 13 & 255) == 0) std::this_thread::yield();
    if ((state_ >> 21 & 0x3fff) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(state_ >> 35 & 127));
  }

 private:
  std::uint64_t state_;
};

/// Completes at once whatever it is given, and keeps the order. Now and then it is slow.
class InstantNic : public Submitter {
 public:
  InstantNic(unsigned seed, Given& given) : delays_(seed), given_(given) {}

  PostResult post(std::uint32_t queue, std::span<const Work> chain) override {
    for (const Work& work : chain) {
      given_.in_order = given_.in_order && work.value == given_.next++;
      if (work.signaled) done_.push_back({queue, work.id, wire::Syndrome::none, 0, 0});
    }
    delays_.pause();
    return {chain.size(), 0};
  }
  std::size_t poll(std::span<WorkCompletion> out) override {
    std::size_t count = 0;
    while (count < out.size() && !done_.empty()) {
      out[count++] = done_.front();
      done_.pop_front();
    }
    return count;
  }
  std::uint32_t depth() const override { return 128; }
  std::uint32_t qpn(std::uint32_t) const override { return 7; }

 private:
  Delays delays_;
  Given& given_;
  std::deque<WorkCompletion> done_;
};

std::unique_ptr<Worker> serve(Rig& rig, std::unique_ptr<Submitter> nic, host::PollingOptions options = {}) {
  std::vector<std::unique_ptr<RingService>> rings;
  rings.push_back(std::move(rig.service));
  return std::make_unique<Worker>(std::move(rings), std::move(nic), options);
}

template <class Policy>
class ProxyWorker : public ::testing::Test {};
using Policies = ::testing::Types<Tuned, TunedRemembering, SharedTuned, Baseline>;
TYPED_TEST_SUITE(ProxyWorker, Policies);

std::uint64_t descriptors_asked_for() {
  const char* text = std::getenv("BELFRY_PROXY_DESCRIPTORS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 100'000;
}

// Fault: a descriptor lost, doubled or torn between a producer and a worker that race, over 2^32 and many
// laps, whoever is late. The normal run is small; BELFRY_PROXY_DESCRIPTORS sets another size (100000000 for
// the full one).
TYPED_TEST(ProxyWorker, EachDescriptorArrivesOnceAndInOrder) {
  const std::uint64_t count = descriptors_asked_for();
  Rig rig(10, (std::uint64_t{1} << 32) - 1024 * 50);
  Given seen;
  auto worker = serve(rig, std::make_unique<InstantNic>(1, seen));
  const auto begin = std::chrono::steady_clock::now();
  {
    Delays delays(2);
    device::proxy::Channel<TypeParam> channel(rig.view, 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Operation op =
          channel.put_value(Thread{}, {0, 0}, i, device::Announce::now, port::Timeout::seconds(60));
      ASSERT_TRUE(op.ok()) << i;
      delays.pause();
    }
    ASSERT_TRUE(channel.flush(Thread{}, port::Timeout::seconds(60)).ok());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  worker.reset();
  EXPECT_EQ(seen.next, count);
  EXPECT_TRUE(seen.in_order);
  std::printf("%llu descriptors in %.1f s: each once, in order\n", static_cast<unsigned long long>(count),
              took.count());
}

/// Ends its worker after some posts.
class DyingNic : public FakeSubmitter {
 public:
  DyingNic() : FakeSubmitter(2) {}
  PostResult post(std::uint32_t queue, std::span<const Work> chain) override {
    if (++calls_ > 3) throw std::runtime_error("the NIC is gone");
    return FakeSubmitter::post(queue, chain);
  }

 private:
  int calls_ = 0;
};

// Fault: a device thread that waits for ever for a worker that is dead.
TYPED_TEST(ProxyWorker, AWorkersDeathIsATypedError) {
  Rig rig(6, 0, {.chain = 1});
  auto worker = serve(rig, std::make_unique<DyingNic>());
  device::proxy::Channel<TypeParam> channel(rig.view, 1);
  Operation last;
  for (int i = 0; i < 10; ++i) last = channel.put_value(Thread{}, {0, 0}, 1u);
  const Outcome o = channel.wait(Thread{}, last, port::Timeout::seconds(20));
  EXPECT_EQ(o.status, Status::completion_error);
  EXPECT_EQ(o.fault.kind, device::Fault::Kind::worker_lost);
  while (worker->alive()) std::this_thread::yield();
  EXPECT_THROW(std::rethrow_exception(worker->failure()), std::runtime_error);
  // A full ring that nobody empties any more says why.
  Status status = Status::done;
  for (int i = 0; i < 100 && status == Status::done; ++i)
    status =
        channel.put_value(Thread{}, {0, 0}, 1u, device::Announce::now, port::Timeout::seconds(20)).status;
  EXPECT_EQ(status, Status::completion_error);
}

struct Gate {
  std::atomic<bool> reached{false};
  std::atomic<bool> open{false};
};

/// Holds its worker inside post() until the gate is open.
class StuckNic : public InstantNic {
 public:
  explicit StuckNic(Gate& gate) : InstantNic(1, given_), gate_(gate) {}
  PostResult post(std::uint32_t queue, std::span<const Work> chain) override {
    gate_.reached = true;
    while (!gate_.open.load()) std::this_thread::yield();
    return InstantNic::post(queue, chain);
  }

 private:
  Gate& gate_;
  Given given_;
};

// Fault: a worker that stands still taken for one that is only slow, for as long as the caller's patience.
TYPED_TEST(ProxyWorker, AStalledWorkerIsFoundByItsHeartbeat) {
  Rig rig(6);
  rig.view.stall_ns = 50'000'000;
  Gate gate;
  auto worker = serve(rig, std::make_unique<StuckNic>(gate));
  device::proxy::Channel<TypeParam> channel(rig.view, 1);
  const Operation op = channel.put_value(Thread{}, {0, 0}, 1u);
  const Outcome o = channel.wait(Thread{}, op, port::Timeout::seconds(100));
  EXPECT_EQ(o.status, Status::completion_error);
  EXPECT_EQ(o.fault.kind, device::Fault::Kind::worker_lost);
  gate.open = true;
}

// Fault: a producer that finds the ring full is told so for as long as it likes to try, and not that nobody
// will ever empty it; short calls, none of which lasts as long as a stall, that never find it.
TYPED_TEST(ProxyWorker, ShortCallsFindAStalledWorkerToo) {
  for (const bool has_room : {true, false}) {
    Rig rig(4, 0, {.chain = 1, .descriptors_a_turn = 1});
    rig.view.stall_ns = 50'000'000;
    Gate gate;
    auto worker = serve(rig, std::make_unique<StuckNic>(gate));
    {
      device::proxy::Channel<TypeParam> channel(rig.view, 1);
      const auto put = [&] {
        return channel.put_value(Thread{}, {0, 0}, 1u, device::Announce::now, port::Timeout{0});
      };
      Operation op = put();
      ASSERT_TRUE(op.ok());
      while (!gate.reached) std::this_thread::yield();
      const auto begin = std::chrono::steady_clock::now();
      for (Status status = Status::done; status != Status::completion_error;) {
        ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
        if (has_room) {
          status = channel.test(op).status;
          EXPECT_NE(status, Status::done);
        } else if (const Operation next = put(); (status = next.status) == Status::done) {
          op = next;
          continue;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(45));
      EXPECT_EQ(channel.fault().kind, device::Fault::Kind::worker_lost);
      // Nothing is lost yet: the worker goes on, and so does the channel.
      gate.open = true;
      while (!channel.wait(Thread{}, op, port::Timeout::seconds(20)).ok())
        ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
      EXPECT_EQ(channel.fault().kind, device::Fault::Kind::none);
      EXPECT_TRUE(channel.put_value(Thread{}, {0, 0}, 1u).ok());
    }
    gate.open = true;
  }
}

// Fault: an operation that a stalled worker's ring refused, of which a wait says that nothing is wrong.
TYPED_TEST(ProxyWorker, ARefusedOperationNamesTheLostWorker) {
  Rig rig(2);
  rig.view.stall_ns = 20'000'000;
  device::proxy::Channel<TypeParam> channel(rig.view, 1);
  Operation op;
  while (op.ok())
    op = channel.put_value(Thread{}, {0, 0}, 1u, device::Announce::now, port::Timeout::seconds(20));
  EXPECT_EQ(op.status, Status::completion_error);
  const Outcome o = channel.wait(Thread{}, op, port::Timeout::seconds(20));
  EXPECT_EQ(o.status, Status::completion_error);
  EXPECT_EQ(o.fault.kind, device::Fault::Kind::worker_lost);
}

// Fault: a worker that has nothing to do, or sleeps by its policy, taken for one that is lost.
TEST(ProxyIdle, IsNoStall) {
  for (const auto kind : {IdlePolicy::Kind::spin, IdlePolicy::Kind::yield, IdlePolicy::Kind::sleep}) {
    Rig rig(4);
    rig.view.stall_ns = 400'000'000;
    Given seen;
    host::PollingOptions options;
    options.idle = {.kind = kind, .spins = 10, .yields = 10, .longest = std::chrono::milliseconds(50)};
    auto worker = serve(rig, std::make_unique<InstantNic>(1, seen), options);
    device::proxy::Channel<Tuned> channel(rig.view, 1);
    ASSERT_TRUE(channel.wait(Thread{}, channel.put_value(Thread{}, {0, 0}, std::uint64_t{0})).ok());
    // One that the worker never sees.
    Operation never;
    never.index = 100;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
    for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
      EXPECT_EQ(channel.test(never).status, Status::timed_out);
      // Now and then nobody looks for longer than a stall.
      std::this_thread::sleep_for(std::chrono::milliseconds(i % 4 == 3 ? 450 : 2));
    }
    EXPECT_EQ(channel.fault().kind, device::Fault::Kind::none);
  }
}

// Fault: a worker's end, or a stall, that fails or holds up the rings of another; a ring of the same worker
// of which nobody says that it is lost too.
TYPED_TEST(ProxyWorker, AWorkersEndHarmsNoOther) {
  for (const bool dies : {true, false}) {
    Rig first(6, 0, {.chain = 1}), second(6, 0, {.chain = 1}), other(6);
    first.view.stall_ns = second.view.stall_ns = 50'000'000;
    Gate gate;
    std::unique_ptr<Submitter> bad;
    if (dies) {
      bad = std::make_unique<DyingNic>();
    } else {
      bad = std::make_unique<StuckNic>(gate);
    }
    std::vector<std::unique_ptr<RingService>> rings;
    rings.push_back(std::move(first.service));
    rings.push_back(std::move(second.service));
    Given seen;
    auto good_worker = serve(other, std::make_unique<InstantNic>(1, seen));
    Worker bad_worker(std::move(rings), std::move(bad), {});
    using Channel = device::proxy::Channel<TypeParam>;
    Channel one(first.view, 1), two(second.view, 1), three(other.view, 1);
    Operation last;
    for (int i = 0; i < 10; ++i) last = one.put_value(Thread{}, {0, 0}, 1u);
    EXPECT_EQ(one.wait(Thread{}, last, port::Timeout::seconds(100)).fault.kind,
              device::Fault::Kind::worker_lost);
    const Operation beside = two.put_value(Thread{}, {0, 0}, 1u);
    EXPECT_EQ(two.wait(Thread{}, beside, port::Timeout::seconds(100)).fault.kind,
              device::Fault::Kind::worker_lost);
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Operation op = three.put_value(Thread{}, {0, 0}, i);
      ASSERT_TRUE(three.wait(Thread{}, op, port::Timeout::seconds(60)).ok()) << i;
    }
    EXPECT_TRUE(good_worker->alive());
    EXPECT_EQ(three.fault().kind, device::Fault::Kind::none);
    gate.open = true;
  }
}

// Fault: an idle worker that does not notice the next descriptor, under each policy.
TEST(ProxyIdle, WorkComesThroughAfterAnyPause) {
  for (const auto kind : {IdlePolicy::Kind::spin, IdlePolicy::Kind::yield, IdlePolicy::Kind::sleep}) {
    Rig rig(4);
    Given seen;
    host::PollingOptions options;
    options.idle.kind = kind;
    options.idle.spins = 10;
    options.idle.yields = 10;
    auto worker = serve(rig, std::make_unique<InstantNic>(1, seen), options);
    device::proxy::Channel<Tuned> channel(rig.view, 1);
    for (std::uint64_t i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(i % 4));
      ASSERT_TRUE(channel.wait(Thread{}, channel.put_value(Thread{}, {0, 0}, i)).ok());
    }
  }
}

}  // namespace
}  // namespace belfry::proxy::test
