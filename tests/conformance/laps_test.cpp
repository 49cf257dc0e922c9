// Queues that go round: indices of 16 and 32 bits that wrap, WQEs across the ring's end, producers that
// publish late.

#include "conformance/kernels/laps.hpp"

#include <chrono>
#include <cstring>

#include "conformance/configurations.hpp"
#include "conformance/kernels/each.hpp"
#include "conformance/kernels/gda_staged.hpp"
#include "conformance/kernels/transfers.hpp"
#include "conformance/late_stores.hpp"

namespace belfry::conformance {
namespace {

constexpr Place kTotal{kSignals, 0};

template <class Configuration>
class Wraps : public Case<Configuration> {
 protected:
  using Endpoint = typename Configuration::Endpoint;

  /// `count` operations of each thread, one queue for all or each its own.
  static void run(std::uint32_t blocks, std::uint64_t first_index, std::uint32_t threads,
                  std::uint32_t count) {
    WorldOptions options;
    options.endpoint.blocks = blocks;
    options.endpoint.first_index = first_index;
    options.endpoint.queues_a_peer = Configuration::kShares ? 1 : threads;
    const auto world = Case<Configuration>::make_world(options);
    ASSERT_TRUE(world.ok());
    using Kernel = Laps<Endpoint>;
    Array<Report> reports(threads);
    Kernel kernel;
    kernel.view = world.view(0);
    kernel.queues = static_cast<std::uint32_t>(options.endpoint.queues_a_peer);
    kernel.count = count;
    kernel.words = {kData, 0};
    kernel.total = kTotal;
    kernel.results = {kRelaxed, 0};
    kernel.reports = reports.data();
    Runner::launch({1, threads}, kernel);
    EXPECT_TRUE(all_good(reports));
    // Flushed, and the total by atomics, which come after the puts of each queue but the last few: wait for
    // all.
    std::uint64_t posted = 0;
    for (std::uint64_t q = 0; q < options.endpoint.queues_a_peer; ++q) {
      const Posted queue = world.posted(0, 1, static_cast<std::uint32_t>(q));
      EXPECT_EQ(queue.reserved, queue.published);
      EXPECT_EQ(queue.complete, queue.published);
      EXPECT_EQ(queue.fault, 0u);
      posted += queue.published - first_index;
    }
    EXPECT_GE(posted, std::uint64_t{threads} * count);
    world.await(1, kTotal, std::uint64_t{threads} * (count / 8));
    EXPECT_EQ(world.word(1, kTotal), std::uint64_t{threads} * (count / 8));
    for (std::uint32_t t = 0; t < threads; ++t) {
      EXPECT_GE(reports[t].values[0], first_index + count - 1);
      for (std::uint32_t i = count - Kernel::kWords; i < count; ++i) {
        if (i % 8 == 7) continue;
        ASSERT_EQ(world.word(1, {kData, (std::uint64_t{t} * Kernel::kWords + i % Kernel::kWords) * 8}),
                  i + 1);
      }
    }
  }
};
TYPED_TEST_SUITE(Wraps, FewConfigurations, ConfigurationNames);

// Fault: a 16-bit counter or producer compared as if it never wrapped.
TYPED_TEST(Wraps, IndicesPassTwoToThe16) {
  TestFixture::run(8, 0, 1, 140'000);
  TestFixture::run(64, 0, 5, 30'000);
}

// Fault (field case 2): an index kept in 32 bits somewhere: the queue stops, or runs into itself, at 2^32.
TYPED_TEST(Wraps, IndicesPassTwoToThe32) {
  constexpr std::uint64_t kFirst = (std::uint64_t{1} << 32) - 65536;
  TestFixture::run(64, kFirst, 1, 70'000);
  TestFixture::run(16, kFirst, TypeParam::kShares ? 4 : 1, TypeParam::kShares ? 20'000 : 70'000);
}

template <class Configuration>
class LongWqes : public Case<Configuration> {};
using InlineConfigurations =
    ::testing::Types<Gda<ExclusiveRecordCollapsed>, Gda<ExclusiveNoRecordRing>, Gda<BlockHandoffRing>,
                     Gda<BlockLockCollapsed>, Gda<GpuHandoffInlined>, Gda<GpuLockCollapsed>>;
TYPED_TEST_SUITE(LongWqes, InlineConfigurations, ConfigurationNames);

// Fault (field case 9): a WQE of several blocks that runs over the ring's end, or over slots that are not
// retired.
TYPED_TEST(LongWqes, GoAroundTheEndOfTheRing) {
  for (const std::uint32_t blocks : {4u, 8u, 16u}) {
    WorldOptions options;
    options.endpoint.blocks = blocks;
    auto world = this->make_world(options);
    ASSERT_TRUE(world.ok());
    std::vector<Transfer> list;
    for (std::uint32_t i = 0; i < 2000; ++i)
      list.push_back({{kData, i * 256}, {kData, i * 256}, i * 61 % 221});
    for (std::size_t i = 0; i < list.size() * 256; ++i)
      *world.bytes(0, {kData, i}) = static_cast<std::byte>(i * 167 + (i >> 8));
    Array<Transfer> transfers(list);
    Array<Report> reports(1);
    PutTransfers<typename TypeParam::Endpoint, device::Thread> kernel;
    kernel.view = world.view(0);
    kernel.transfers = transfers.data();
    kernel.count = static_cast<std::uint32_t>(transfers.size());
    kernel.after = {{kSignals, 64}, 1, device::SignalOperation::add};
    kernel.reports = reports.data();
    Runner::launch({1, 1}, kernel);
    EXPECT_TRUE(all_good(reports)) << blocks << " blocks";
    world.await(1, {kSignals, 64}, 1);
    for (const Transfer& t : list) {
      ASSERT_EQ(std::memcmp(world.bytes(1, t.remote), world.bytes(0, t.local), t.bytes), 0) << t.bytes;
      ASSERT_EQ(*world.bytes(1, t.remote + t.bytes), std::byte{0}) << t.bytes;
    }
  }
}

// Fault: a warp's WQEs that fill the whole ring find no room, though all before them is complete: the blocks
// behind the first of the last WQE count as taken, or nobody announced what they wait for.
TYPED_TEST(LongWqes, AWarpMayFillTheWholeRing) {
  for (const bool long_wqes : {true, false}) {
    WorldOptions options;
    options.endpoint.blocks = long_wqes ? 128 : 32;  // four blocks a lane, or one
    auto world = this->make_world(options);
    ASSERT_TRUE(world.ok());
    Array<Report> reports(port::kWarpSize);
    FillRing<typename TypeParam::Endpoint> kernel;
    kernel.view = world.view(0);
    kernel.base = {kData, 0};
    kernel.stride = 256;
    kernel.bytes = long_wqes ? 200 : 8;
    kernel.count = 8;
    kernel.extra = {kData, 65536};
    kernel.after = {{kSignals, 64}, 1, device::SignalOperation::add};
    kernel.reports = reports.data();
    const auto begin = std::chrono::steady_clock::now();
    Runner::launch({1, 32}, kernel);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::nanoseconds(kPatient.ns));
    EXPECT_TRUE(all_good(reports)) << kernel.bytes << " B a lane";
    world.await(1, kernel.after.place, 1);
    EXPECT_EQ(world.word(1, kernel.extra), 7u);
  }
}

template <class Configuration>
class Publishing : public Case<Configuration> {};
using HandoffConfigurations =
    ::testing::Types<Gda<BlockHandoffRing>, Gda<BlockHandoffCollapsed>, Gda<GpuHandoffRing>,
                     Gda<GpuHandoffCollapsed>, Assisted<GpuHandoffRing>>;
TYPED_TEST_SUITE(Publishing, HandoffConfigurations, ConfigurationNames);

// Fault (field case 11): a doorbell that covers another producer's slot before its WQE is there: the NIC then
// executes what a lap before left in it, so a word goes down again or the total is wrong.
TYPED_TEST(Publishing, FieldCase11NothingIsFetchedBeforeItIsThere) {
  const lanes::Grid grid{TypeParam::kSharesAcrossBlocks ? 2u : 1u, TypeParam::kSharesAcrossBlocks ? 6u : 40u};
  expect_nothing_taken_early<DelayedStages<typename TypeParam::Policy>>(this->make_world, grid, 400);
}

}  // namespace
}  // namespace belfry::conformance
