// What only mini-proxy's rings have: producers that store late, requests of several descriptors across a
// lap's end, and faults that reach the device through a worker.

#include <algorithm>

#include "conformance/configurations.hpp"
#include "conformance/kernels/atomics.hpp"
#include "conformance/kernels/calls.hpp"
#include "conformance/kernels/faults.hpp"
#include "conformance/kernels/proxy_staged.hpp"
#include "conformance/late_stores.hpp"

namespace belfry::conformance {
namespace {

using device::Fault;
using device::Status;
using wire::Syndrome;

template <class Configuration>
class ProxyStores : public Case<Configuration> {};
using SharedRings = ::testing::Types<Proxy<SharedTuned>, Proxy<Baseline>>;
TYPED_TEST_SUITE(ProxyStores, SharedRings, ConfigurationNames);

// Fault (field case 11): a worker that passes a slot which is reserved and not yet filled, and takes what a
// lap before left in it: a word goes down again, or the total is wrong.
TYPED_TEST(ProxyStores, FieldCase11NothingIsTakenBeforeItIsThere) {
  expect_nothing_taken_early<DelayedDescriptors<typename TypeParam::Policy>>(this->make_world, {2, 6}, 200);
}

template <class Configuration>
class ProxyRings : public Case<Configuration> {
 protected:
  using Endpoint = typename Configuration::Endpoint;

  static Report call_once(const ProxyWorld& world, Call which, std::uint32_t ring) {
    Array<Report> reports(1);
    OneCall<Endpoint> kernel;
    kernel.view = world.view(0);
    kernel.which = which;
    kernel.arguments.index = ring;
    kernel.arguments.remote = {kData, 4096};
    kernel.arguments.local = {kData, 8192};
    kernel.arguments.signal = {kSignals, 256};
    kernel.reports = reports.data();
    Runner::launch({1, 1}, kernel);
    return reports[0];
  }
};
using EveryProtocol = ::testing::Types<Proxy<TunedPublished>, Proxy<SharedTuned>, Proxy<Baseline>>;
TYPED_TEST_SUITE(ProxyRings, EveryProtocol, ConfigurationNames);

// Fault: a request of two or three descriptors that is torn where the ring ends: a part of it in another
// lap's parity, or over a slot that is not free.
TYPED_TEST(ProxyRings, RequestsOfSeveralDescriptorsGoAroundTheEnd) {
  constexpr std::uint32_t kRounds = 60;
  const std::uint32_t threads = TypeParam::kShares ? 3 : 1;
  WorldOptions options;
  options.endpoint.blocks = 4;
  options.endpoint.first_index = (std::uint64_t{1} << 32) - 64;
  auto world = this->make_world(options);
  ASSERT_TRUE(world.ok());
  Array<Report> reports(threads);
  Array<std::uint64_t> olds(threads * kRounds);
  Contend<typename TypeParam::Endpoint> kernel;
  kernel.view = world.view(0);
  kernel.peer = 1;
  kernel.rounds = kRounds;
  kernel.added = {kSignals, 0};
  kernel.swapped = {kSignals, 64};
  kernel.results = {kData, 0};
  kernel.olds = olds.data();
  kernel.reports = reports.data();
  Runner::launch({1, threads}, kernel);
  EXPECT_TRUE(all_good(reports));
  std::sort(olds.begin(), olds.end());
  for (std::uint64_t i = 0; i < olds.size(); ++i) ASSERT_EQ(olds[i], i);
  EXPECT_EQ(world.word(1, {kSignals, 64}), olds.size());
}

// Fault (field case 3): an error completion that no worker passes on, or with another's index or cause; a
// wait behind it that spins; another ring that fails with it.
TYPED_TEST(ProxyRings, FieldCase3OneOfFiveFails) {
  for (const std::uint32_t bad : {0u, 2u, 4u}) {
    for (const bool early : {true, false}) {
      SCOPED_TRACE("put " + std::to_string(bad) + (early ? ", early" : ", late"));
      WorldOptions options;
      options.endpoint.queues_a_peer = 2;
      auto world = this->make_world(options);
      ASSERT_TRUE(world.ok());
      Array<Report> reports(1);
      Array<FaultRecord> records(5);
      Fail<typename TypeParam::Endpoint> kernel;
      kernel.view = world.view(0);
      kernel.plan.good = kernel.plan.bad_local = {kData, 0};
      kernel.plan.bad_remote = {kUnwritable, 64};
      kernel.plan.count = 5;
      kernel.plan.bad = bad;
      kernel.plan.early = early;
      kernel.plan.pause_turns = early ? 0 : 5000;
      kernel.records = records.data();
      kernel.reports = reports.data();
      Runner::launch({1, 1}, kernel);
      const std::uint64_t root = records[bad].operation.index;
      for (std::uint32_t i = 0; i < 5; ++i) {
        const FaultRecord& r = records[i];
        ASSERT_TRUE(r.operation.ok()) << i;
        if (i < bad) {
          EXPECT_TRUE(r.outcome.ok()) << i << ": " << describe(r.outcome);
          continue;
        }
        EXPECT_EQ(r.outcome.status, Status::completion_error) << i;
        EXPECT_EQ(r.outcome.syndrome, i == bad ? Syndrome::remote_access : Syndrome::flushed) << i;
        EXPECT_EQ(r.outcome.fault.kind, Fault::Kind::root) << i;
        EXPECT_EQ(r.outcome.fault.index, root) << i;
        EXPECT_NE(r.outcome.fault.qpn, 0u) << i;
        EXPECT_NE(r.outcome.fault.vendor, 0u) << i;
        EXPECT_LT(r.elapsed_ns, kPatient.ns / 2) << i;
      }
      for (const int value : {0, 1})
        EXPECT_EQ(reports[0].values[value], static_cast<std::uint64_t>(Status::completion_error)) << value;
      EXPECT_EQ(reports[0].outcome.fault.index, root);
      for (const Call call : {Call::put, Call::signal_add, Call::flush})
        EXPECT_EQ(this->call_once(world, call, 1).values[0], static_cast<std::uint64_t>(Status::done));
      world.await(1, {kSignals, 256}, 1);
      EXPECT_EQ(world.endpoint(0).fault_word(1), 0u);
    }
  }
}

// Fault (field case 3): a put that a working peer's queue has carried out reported as flushed, because
// another peer's queue on the same ring has failed; a failure without the peer's name.
TYPED_TEST(ProxyRings, FieldCase3AnotherPeersPutsAreNotCalledFlushed) {
  constexpr std::uint32_t kCount = 12;
  for (const std::uint32_t bad : {0u, 5u}) {
    WorldOptions options;
    options.pes = 3;
    auto world = this->make_world(options);
    ASSERT_TRUE(world.ok());
    Array<FaultRecord> records(kCount);
    FailBeside<typename TypeParam::Endpoint> kernel;
    kernel.view = world.view(0);
    kernel.words = {kData, 0};
    kernel.bad_remote = {kUnwritable, 64};
    kernel.count = kCount;
    kernel.bad = bad;
    kernel.records = records.data();
    Runner::launch({1, 1}, kernel);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      SCOPED_TRACE(i);
      const FaultRecord& r = records[i];
      const device::Outcome& o = r.outcome;
      ASSERT_TRUE(r.operation.ok());
      if (o.ok()) {
        EXPECT_LT(i, bad);
        continue;
      }
      EXPECT_EQ(o.status, Status::completion_error);
      EXPECT_EQ(o.fault.index, records[bad].operation.index);
      EXPECT_EQ(o.fault.peer, 1u);
      if (i == bad) {
        EXPECT_EQ(o.syndrome, Syndrome::remote_access);
      } else if (o.syndrome == Syndrome::flushed) {
        EXPECT_EQ(world.word(2, kernel.words + i * std::uint64_t{8}), 0u) << "said to be flushed";
      } else {
        EXPECT_EQ(o.syndrome, Syndrome::none);
      }
    }
  }
}

// Fault: a peer that has gone and takes its peers' waits with it.
TYPED_TEST(ProxyRings, ADeadPeerEndsTheWait) {
  WorldOptions options;
  options.endpoint.connection.ack_timeout = 8;
  options.endpoint.connection.retry_count = 2;
  auto world = this->make_world(options);
  ASSERT_TRUE(world.ok());
  world.end(1);
  Array<Report> reports(1);
  Array<FaultRecord> records(3);
  Fail<typename TypeParam::Endpoint> kernel;
  kernel.view = world.view(0);
  kernel.plan.good = kernel.plan.bad_local = kernel.plan.bad_remote = {kData, 0};
  kernel.plan.count = 3;
  kernel.records = records.data();
  kernel.reports = reports.data();
  Runner::launch({1, 1}, kernel);
  EXPECT_EQ(records[0].outcome.syndrome, Syndrome::transport_retry_exceeded);
  EXPECT_EQ(records[2].outcome.syndrome, Syndrome::flushed);
  for (const FaultRecord& r : records) {
    EXPECT_EQ(r.outcome.status, Status::completion_error);
    EXPECT_EQ(r.outcome.fault.index, 0u);
    EXPECT_LT(r.elapsed_ns, kPatient.ns / 2);
  }
}

}  // namespace
}  // namespace belfry::conformance
