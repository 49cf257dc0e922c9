/// \file
/// Workers as threads: rings shared with a producer that runs at the same time, and workers that end badly.

#include "proxy/worker.hpp"

#include <random>
#include <thread>

#include "proxy/rig.hpp"

namespace belfry::proxy::test {
namespace {

/// What a NIC was given; it outlives the NIC, which goes with its worker.
struct Given {
  std::uint64_t next = 0;
  bool in_order = true;
};

/// Completes at once whatever it is given, and keeps the order.
class InstantNic : public Submitter {
 public:
  InstantNic(unsigned seed, Given& given) : random_(seed), given_(given) {}

  PostResult post(std::uint32_t queue, std::span<const Work> chain) override {
    for (const Work& work : chain) {
      given_.in_order = given_.in_order && work.value == given_.next++;
      if (work.signaled) done_.push_back({queue, work.id, wire::Syndrome::none, 0, 0});
    }
    if (random_() % 4096 == 0) std::this_thread::yield();
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
  std::mt19937 random_;
  Given& given_;
  std::deque<WorkCompletion> done_;
};

std::unique_ptr<Worker> serve(Rig& rig, std::unique_ptr<Submitter> nic, WorkerOptions options = {}) {
  std::vector<std::unique_ptr<RingService>> rings;
  rings.push_back(std::move(rig.service));
  return std::make_unique<Worker>(std::move(rings), std::move(nic), options);
}

template <class Policy>
class ProxyWorker : public ::testing::Test {};
using Policies = ::testing::Types<Tuned, SharedTuned, Baseline>;
TYPED_TEST_SUITE(ProxyWorker, Policies);

// Fault: a descriptor lost, doubled or torn between a producer and a worker that race, over 2^32 and many
// laps.
TYPED_TEST(ProxyWorker, EachDescriptorArrivesOnceAndInOrder) {
  const std::uint64_t count = std::getenv("BELFRY_PROXY_LONG") != nullptr ? 100'000'000 : 200'000;
  Rig rig(6, (std::uint64_t{1} << 32) - 64 * 5000);
  Given seen;
  auto worker = serve(rig, std::make_unique<InstantNic>(1, seen));
  {
    std::mt19937 random(2);
    device::proxy::Channel<TypeParam> channel(rig.view, 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(channel.put_value(Thread{}, {0, 0}, i).ok()) << i;
      if (random() % 8192 == 0) std::this_thread::yield();
    }
    ASSERT_TRUE(channel.flush(Thread{}).ok());
  }
  worker.reset();
  EXPECT_EQ(seen.next, count);
  EXPECT_TRUE(seen.in_order);
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

/// Holds its worker inside post() until it is let go.
class StuckNic : public FakeSubmitter {
 public:
  explicit StuckNic(std::atomic<bool>& go) : FakeSubmitter(2), go_(go) {}
  PostResult post(std::uint32_t queue, std::span<const Work> chain) override {
    while (!go_.load()) std::this_thread::yield();
    return FakeSubmitter::post(queue, chain);
  }

 private:
  std::atomic<bool>& go_;
};

// Fault: a worker that stands still taken for one that is only slow, for as long as the caller's patience.
TYPED_TEST(ProxyWorker, AStalledWorkerIsFoundByItsHeartbeat) {
  Rig rig(6);
  rig.view.stall_ns = 50'000'000;
  std::atomic<bool> go{false};
  auto worker = serve(rig, std::make_unique<StuckNic>(go));
  device::proxy::Channel<TypeParam> channel(rig.view, 1);
  const Operation op = channel.put_value(Thread{}, {0, 0}, 1u);
  const Outcome o = channel.wait(Thread{}, op, port::Timeout::seconds(100));
  EXPECT_EQ(o.status, Status::completion_error);
  EXPECT_EQ(o.fault.kind, device::Fault::Kind::worker_lost);
  go = true;
}

// Fault: an idle worker that does not notice the next descriptor, under each policy.
TEST(ProxyIdle, WorkComesThroughAfterAnyPause) {
  for (const auto kind : {IdlePolicy::Kind::spin, IdlePolicy::Kind::yield, IdlePolicy::Kind::sleep}) {
    Rig rig(4);
    Given seen;
    WorkerOptions options;
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
