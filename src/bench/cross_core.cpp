#include "bench/cross_core.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace belfry::bench {
namespace {

struct Lines {
  alignas(128) std::atomic<std::uint64_t> there{0};
  alignas(128) std::atomic<std::uint64_t> back{0};
};

/// Spins, and gives the core away now and then: with one core the other side would never run.
void await(const std::atomic<std::uint64_t>& line, std::uint64_t value) {
  for (unsigned turn = 1; line.load(std::memory_order_acquire) != value; ++turn)
    if (turn % 65536 == 0) std::this_thread::yield();
}

}  // namespace

double cross_core_round_trip_ns(std::uint64_t rounds) {
  constexpr std::uint64_t kWarmUp = 1000;
  Lines lines;
  std::thread echo([&] {
    for (std::uint64_t i = 1; i <= rounds + kWarmUp; ++i) {
      await(lines.there, i);
      lines.back.store(i, std::memory_order_release);
    }
  });
  auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 1; i <= rounds + kWarmUp; ++i) {
    if (i == kWarmUp + 1) begin = std::chrono::steady_clock::now();
    lines.there.store(i, std::memory_order_release);
    await(lines.back, i);
  }
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
  echo.join();
  return passed.count() / static_cast<double>(rounds);
}

}  // namespace belfry::bench
