// Many threads of many PEs on one word, through shared queues or each through its own.

#include <algorithm>

#include "conformance/configurations.hpp"
#include "conformance/kernels/atomics.hpp"

namespace belfry::conformance {
namespace {

template <class Configuration>
class Contention : public Case<Configuration> {};
TYPED_TEST_SUITE(Contention, SharingConfigurations, ConfigurationNames);

// Fault: an atomic that is not one among all who use the word; a result that goes to another thread; a shared
// queue that loses or repeats a WQE when its producers meet.
TYPED_TEST(Contention, OldValuesAreEachNumberOnce) {
  constexpr std::uint32_t kRounds = 12;
  // 2 blocks of 12 threads a PE, or one block where sharing ends there.
  const bool across_blocks = TypeParam::kSharesAcrossBlocks || !TypeParam::kShares;
  const lanes::Grid grid{across_blocks ? 2u : 1u, 12};
  const std::uint32_t threads = grid.blocks * grid.threads;
  WorldOptions options;
  options.pes = 3;
  options.endpoint.self_queues = true;
  options.endpoint.queues_a_peer = TypeParam::kShares ? 1 : threads;
  options.endpoint.blocks = 16;  // fewer than threads: they wait for room
  auto world = this->make_world(options);
  ASSERT_TRUE(world.ok());

  std::vector<Array<Report>> reports;
  std::vector<Array<std::uint64_t>> olds;
  for (std::uint32_t pe = 0; pe < world.pes(); ++pe) {
    reports.emplace_back(threads);
    olds.emplace_back(threads * kRounds);
  }
  std::vector<std::function<void()>> launches;
  for (std::uint32_t pe = 0; pe < world.pes(); ++pe) {
    launches.emplace_back([&, pe] {
      Contend<typename TypeParam::Endpoint> kernel;
      kernel.view = world.view(pe);
      kernel.peer = 0;
      kernel.queues = static_cast<std::uint32_t>(options.endpoint.queues_a_peer);
      kernel.rounds = kRounds;
      kernel.added = {kSignals, 0};
      kernel.swapped = {kSignals, 64};
      kernel.results = {kData, 0};
      kernel.olds = olds[pe].data();
      kernel.reports = reports[pe].data();
      Runner::launch(grid, kernel);
    });
  }
  run_together(std::move(launches));
  std::vector<std::uint64_t> all;
  for (std::uint32_t pe = 0; pe < world.pes(); ++pe) {
    EXPECT_TRUE(all_good(reports[pe])) << "PE " << pe;
    all.insert(all.end(), olds[pe].begin(), olds[pe].end());
  }
  std::sort(all.begin(), all.end());
  for (std::uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
  const std::uint64_t total = std::uint64_t{world.pes()} * threads * kRounds;
  EXPECT_EQ(world.word(0, {kSignals, 0}), total);
  EXPECT_EQ(world.word(0, {kSignals, 64}), total);
}

}  // namespace
}  // namespace belfry::conformance
