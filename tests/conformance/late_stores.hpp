#pragma once
/// \file
/// Field case 11 on either transport: producers that store late, and a peer that watches for what a lap
/// before has left in a slot.

#include <type_traits>

#include "conformance/kernels/watch.hpp"
#include "conformance/world.hpp"

namespace belfry::conformance {

/// Every thread's puts count up in a word of its own, and every fourth request adds 1 to a word of all. Were
/// a slot taken before it is filled, a word would go down again, or the total be wrong. \tparam Kernel
/// DelayedStages or DelayedDescriptors \param make_world WorldOptions -> a connected world
template <class Kernel, class MakeWorld>
void expect_nothing_taken_early(const MakeWorld& make_world, lanes::Grid grid, std::uint32_t rounds) {
  constexpr Place kTotal{kSignals, 0};
  const std::uint32_t threads = grid.blocks * grid.threads;
  for (const std::uint32_t most_turns : {0u, 8u, 60u}) {
    WorldOptions options;
    options.endpoint.blocks = 16;
    auto world = make_world(options);
    ASSERT_TRUE(world.ok());
    Array<Report> reports(threads);
    Array<Report> watcher(1);
    Kernel kernel;
    kernel.view = world.view(0);
    kernel.words = {kData, 0};
    kernel.total = kTotal;
    kernel.results = {kData, 4096};
    kernel.rounds = rounds;
    kernel.most_turns = most_turns;
    kernel.seed = most_turns;
    kernel.reports = reports.data();
    WatchRising<std::decay_t<decltype(world.view(1))>> watch;
    watch.view = world.view(1);
    watch.words = {kData, 0};
    watch.count = threads;
    watch.stop = kTotal;
    watch.last = std::uint64_t{threads} * (rounds / 4);
    watch.reports = watcher.data();
    run_together({[&] { Runner::launch(grid, kernel); }, [&] { Runner::launch({1, 1}, watch); }});
    EXPECT_TRUE(all_good(reports));
    EXPECT_EQ(watcher[0].bad, 0u);
    EXPECT_EQ(watcher[0].values[0], 0u) << "words that went down, of " << watcher[0].values[1] << " looks";
    EXPECT_EQ(world.word(1, kTotal), watch.last);
    for (std::uint64_t t = 0; t < threads; ++t) EXPECT_EQ(world.word(1, {kData, t * 8}), rounds - 1) << t;
  }
}

}  // namespace belfry::conformance
