// Queues that fail: the root cause, what is flushed behind it, in bounded time, for every thread that uses
// the queue.

#include "conformance/kernels/faults.hpp"

#include <algorithm>

#include "belfry/device/fault.hpp"
#include "conformance/configurations.hpp"

namespace belfry::conformance {
namespace {

using device::Announce;
using device::Fault;
using device::Status;
using wire::Syndrome;

/// Nothing that fails may take as long as this, though each call's timeout is kPatient.
constexpr std::uint64_t kBoundNs = kPatient.ns / 2;

enum class Break { remote_key, local_key, peer };

Syndrome syndrome_of(Break what) {
  return what == Break::remote_key  ? Syndrome::remote_access
         : what == Break::local_key ? Syndrome::local_protection
                                    : Syndrome::transport_retry_exceeded;
}

template <class Configuration>
class Faults : public Case<Configuration> {
 protected:
  using Endpoint = typename Configuration::Endpoint;

  struct Run {
    std::vector<FaultRecord> records;
    std::vector<Report> reports;
    Fault latched;  ///< as the host reads it
    std::uint32_t qpn = 0;
    std::uint64_t first_index = 0;
  };

  /// Posts count puts of each of `threads` threads, of which one fails.
  static Run run(Break what, std::uint32_t threads, FaultPlan plan, std::uint64_t first_index = 0) {
    WorldOptions options;
    options.endpoint.blocks = 64;
    options.endpoint.first_index = first_index;
    options.endpoint.connection.ack_timeout = what == Break::peer ? 8 : 14;
    options.endpoint.connection.retry_count = what == Break::peer ? 2 : 7;
    const auto world = Case<Configuration>::make_world(options);
    Run result;
    if (!world.ok()) return result;
    ChangedView changed(world.view(0));
    const std::uint32_t bad = changed.add_window(kData);
    if (what == Break::remote_key)
      changed.remote(bad, 1).rkey = Be32(changed.remote(bad, 1).rkey.get() ^ 0x5500);
    if (what == Break::local_key) changed.window(bad).lkey = Be32(changed.window(bad).lkey.get() ^ 0x5500);
    if (what == Break::peer) world.endpoint(1).queue(0).fail();
    plan.good = {kData, 0};
    plan.bad_remote = {what == Break::remote_key ? bad : static_cast<std::uint32_t>(kData), 64};
    plan.bad_local = {what == Break::local_key ? bad : static_cast<std::uint32_t>(kData), 64};
    // Inlined, the local key of a put is never used.
    plan.bytes = what == Break::local_key ? 512 : 8;
    Array<Report> reports(threads);
    Array<FaultRecord> records(threads * plan.count);
    Fail<Endpoint> kernel;
    kernel.view = changed.view();
    kernel.plan = plan;
    kernel.records = records.data();
    kernel.reports = reports.data();
    Runner::launch({1, threads}, kernel);
    result.records.assign(records.begin(), records.end());
    result.reports.assign(reports.begin(), reports.end());
    const device::SendQueue& queue = world.view(0).queues[1];
    result.latched = world.endpoint(0).fault(1);
    result.qpn = queue.qpn;
    result.first_index = first_index;
    return result;
  }

  /// The records in the order of the queue; those that were refused when posted come last.
  static std::vector<FaultRecord> in_order(const Run& run) {
    std::vector<FaultRecord> records = run.records;
    std::stable_sort(records.begin(), records.end(), [](const FaultRecord& a, const FaultRecord& b) {
      if (a.operation.ok() != b.operation.ok()) return a.operation.ok();
      return a.operation.ok() && a.operation.index < b.operation.index;
    });
    return records;
  }

  /// \param root_index of the one that fails
  /// \param late completions came before anybody looked, and a collapsed CQ shows the last only
  static void expect(const Run& run, Break what, std::uint64_t root_index, bool late) {
    ASSERT_FALSE(run.records.empty());
    constexpr bool kKeepsAll = Configuration::Policy::completion_layout == CompletionLayout::ring;
    const bool unknown = run.latched.kind == Fault::Kind::unknown;
    EXPECT_TRUE(unknown || run.latched.kind == Fault::Kind::root);
    EXPECT_FALSE(unknown && (kKeepsAll || !late)) << "the root cause was lost";
    EXPECT_EQ(run.latched.qpn, run.qpn);
    if (unknown) {
      EXPECT_LE(run.latched.index, root_index);
      EXPECT_EQ(run.latched.syndrome, Syndrome::flushed);
    } else {
      EXPECT_EQ(run.latched.index, root_index);
      EXPECT_EQ(run.latched.syndrome, syndrome_of(what));
      EXPECT_NE(run.latched.vendor, 0);
    }
    for (const FaultRecord& r : in_order(run)) {
      EXPECT_LT(r.elapsed_ns, kBoundNs);
      if (!r.operation.ok()) {
        EXPECT_EQ(r.operation.status, Status::completion_error);
        continue;
      }
      const std::string which = "WQE " + std::to_string(r.operation.index - run.first_index) + ": ";
      if (r.operation.index < root_index) {
        EXPECT_TRUE(r.outcome.ok() || unknown) << which << describe(r.outcome);
        continue;
      }
      ASSERT_EQ(r.outcome.status, Status::completion_error) << which << describe(r.outcome);
      EXPECT_EQ(r.outcome.fault.qpn, run.qpn) << which;
      const bool is_root = r.operation.index == root_index && r.outcome.fault.kind == Fault::Kind::root;
      EXPECT_EQ(r.outcome.syndrome, is_root ? syndrome_of(what) : Syndrome::flushed) << which;
      if (r.outcome.fault.kind == Fault::Kind::root) {
        EXPECT_EQ(r.outcome.fault.index, root_index) << which;
      }
    }
    for (const Report& r : run.reports) {
      EXPECT_EQ(r.values[0], static_cast<std::uint64_t>(Status::completion_error)) << "flush";
      EXPECT_EQ(r.values[1], static_cast<std::uint64_t>(Status::completion_error)) << "a put after";
      EXPECT_EQ(r.outcome.fault.kind, run.latched.kind);
      EXPECT_EQ(r.outcome.fault.index, run.latched.index);
      EXPECT_LT(r.elapsed_ns, kBoundNs);
    }
  }
};
TYPED_TEST_SUITE(Faults, GdaConfigurations, ConfigurationNames);

// Fault (field case 3): an error CQE that nobody reads, or that is read as a flush; a wait behind it that
// spins.
TYPED_TEST(Faults, OneOfFiveFails) {
  for (const Break what : {Break::remote_key, Break::local_key}) {
    for (const std::uint32_t bad : {0u, 2u, 4u}) {
      for (const bool early : {true, false}) {
        for (const bool backwards : {false, true}) {
          if (early && backwards) continue;
          for (const Announce announce : {Announce::now, Announce::later}) {
            if (early && announce == Announce::later) continue;
            SCOPED_TRACE(std::string(what == Break::remote_key ? "remote" : "local") + " key, put " +
                         std::to_string(bad) + (early ? ", early" : ", late") +
                         (backwards ? ", backwards" : "") +
                         (announce == Announce::now ? "" : ", one doorbell"));
            FaultPlan plan;
            plan.count = 5;
            plan.bad = bad;
            plan.early = early;
            plan.backwards = backwards;
            plan.announce = announce;
            plan.pause_turns = early ? 0 : 20000;
            const auto run = TestFixture::run(what, 1, plan);
            TestFixture::expect(run, what, run.records[bad].operation.index, !early);
            if (TestFixture::HasFailure()) return;
          }
        }
      }
    }
  }
}

// Fault: a peer that has gone and takes its peers' waits with it.
TYPED_TEST(Faults, ADeadPeerEndsTheWait) {
  for (const bool early : {true, false}) {
    FaultPlan plan;
    plan.count = 5;
    plan.bad = 0;
    plan.early = early;
    const auto run = TestFixture::run(Break::peer, 1, plan);
    TestFixture::expect(run, Break::peer, 0, !early);
  }
}

// Fault: a fault's index that is cut to 32 or 16 bits, or widened from the wrong side.
TYPED_TEST(Faults, IndicesKeepTheir64Bits) {
  const std::uint64_t first = (std::uint64_t{7} << 32) - 65536;
  FaultPlan plan;
  plan.count = 5;
  plan.bad = 3;
  const auto run = TestFixture::run(Break::remote_key, 1, plan, first);
  ASSERT_EQ(run.records.size(), 5u);
  EXPECT_GE(run.records[3].operation.index, first + 3);
  TestFixture::expect(run, Break::remote_key, run.records[3].operation.index, true);
}

template <class Configuration>
class SharedFaults : public Faults<Configuration> {};
using SharedConfigurations =
    ::testing::Types<Gda<BlockHandoffRing>, Gda<BlockLockCollapsed>, Gda<GpuHandoffRing>,
                     Gda<GpuHandoffCollapsed>, Gda<GpuLockRing>, Gda<GpuLockCollapsed>>;
TYPED_TEST_SUITE(SharedFaults, SharedConfigurations, ConfigurationNames);

// Fault: a thread that waits for ever because another has taken the error CQE; two threads that latch
// different causes; a flush taken for the cause by whoever comes second.
TYPED_TEST(SharedFaults, EveryThreadOfTheQueueIsTold) {
  constexpr std::uint32_t kThreads = 9;
  for (const std::uint32_t bad : {0u, 13u, 44u}) {
    for (const bool early : {true, false}) {
      for (const bool backwards : {false, true}) {
        SCOPED_TRACE("put " + std::to_string(bad) + (early ? ", early" : ", late"));
        FaultPlan plan;
        plan.count = 5;
        plan.bad = bad;
        plan.early = early;
        plan.backwards = backwards;
        plan.pause_turns = early ? 0 : 3000;
        const auto run = TestFixture::run(Break::remote_key, kThreads, plan);
        ASSERT_EQ(run.records.size(), std::size_t{kThreads} * plan.count);
        const FaultRecord& root = run.records[bad % kThreads * plan.count + bad / kThreads];
        ASSERT_TRUE(root.operation.ok()) << "nothing else fails before";
        // Whoever polls early may still find a collapsed entry that a flush has replaced already: other
        // threads' puts stand behind the one that fails.
        TestFixture::expect(run, Break::remote_key, root.operation.index, true);
        if (TestFixture::HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace belfry::conformance
