// What lanes cost: turns, collectives, launches. Run it alone on a quiet machine:
//   build/release/bin/lanes_benchmark
#include <benchmark/benchmark.h>

#include <cstdint>

#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"

namespace belfry::lanes {
namespace {

constexpr std::uint32_t kTurns = 100'000;

/// Runs one warp whose every lane does `turn` many times, and reports the time of one lane's turn.
template <class Turn>
void run_warp(benchmark::State& state, std::uint32_t threads, Turn turn) {
  for (auto _ : state) {
    const LaunchReport report = launch({1, threads}, {}, [turn] {
      for (std::uint32_t i = 0; i < kTurns; ++i) turn();
    });
    state.SetIterationTime(std::chrono::duration<double>(report.elapsed).count());
  }
  const auto turns = static_cast<double>(state.iterations()) * kTurns * threads;
  state.counters["turn"] =
      benchmark::Counter(turns, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// A waiting loop's turn, of which a lane alone makes a pause, and lanes of a full warp a switch each.
void yield(benchmark::State& state) {
  run_warp(state, static_cast<std::uint32_t>(state.range(0)), [] { port::pause_lane(); });
}
BENCHMARK(yield)->Arg(1)->Arg(2)->Arg(32)->UseManualTime();

void sync_warp(benchmark::State& state) {
  run_warp(state, static_cast<std::uint32_t>(state.range(0)), [] { port::sync_warp(port::warp_mask()); });
}
BENCHMARK(sync_warp)->Arg(1)->Arg(32)->UseManualTime();

void ballot(benchmark::State& state) {
  run_warp(state, static_cast<std::uint32_t>(state.range(0)),
           [] { benchmark::DoNotOptimize(port::ballot(port::warp_mask(), true)); });
}
BENCHMARK(ballot)->Arg(1)->Arg(32)->UseManualTime();

void shuffle(benchmark::State& state) {
  run_warp(state, static_cast<std::uint32_t>(state.range(0)),
           [] { benchmark::DoNotOptimize(port::shuffle(port::warp_mask(), std::uint64_t{7}, 0)); });
}
BENCHMARK(shuffle)->Arg(1)->Arg(32)->UseManualTime();

void sync_block(benchmark::State& state) {
  run_warp(state, static_cast<std::uint32_t>(state.range(0)), [] { port::sync_block(); });
}
BENCHMARK(sync_block)->Arg(1)->Arg(32)->Arg(64)->UseManualTime();

/// Threads, stacks and joins of a grid that does nothing.
void launch_grid(benchmark::State& state) {
  const Grid grid{static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1))};
  for (auto _ : state) launch(grid, {}, [] {});
}
BENCHMARK(launch_grid)->Args({1, 1})->Args({1, 32})->Args({1, 1024})->Args({1024, 32})->UseRealTime();

}  // namespace
}  // namespace belfry::lanes

BENCHMARK_MAIN();
