#include "bench/clock.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace belfry::bench {
namespace {

/// Does the counter run at one rate whatever the core's frequency and sleep states?
bool counter_is_steady() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  // Leaf 0x80000007, EDX bit 8: invariant TSC.
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

constexpr const char* counter_name() {
#if defined(__x86_64__)
  return "tsc";
#elif defined(__aarch64__)
  return "cntvct";
#else
  return "steady_clock";
#endif
}

}  // namespace

Clock::Clock() {
  using std::chrono::steady_clock;
  const bool counter = counter_is_steady();
  ticks_ = Ticks(counter);
  if (!counter) {
    using Period = steady_clock::period;
    microseconds_per_tick_ = 1e6 * Period::num / Period::den;
    return;
  }
  name_ = counter_name();
  const auto begin = steady_clock::now();
  const std::uint64_t first = now();
  auto end = begin;
  while (end - begin < std::chrono::milliseconds(20)) end = steady_clock::now();
  const std::uint64_t last = now();
  microseconds_per_tick_ =
      std::chrono::duration<double, std::micro>(end - begin).count() / static_cast<double>(last - first);
}

std::vector<double> Clock::overhead_ns(unsigned reads) const {
  std::vector<double> samples;
  samples.reserve(reads);
  for (unsigned i = 0; i < reads; ++i) {
    const std::uint64_t begin = now();
    samples.push_back(microseconds(now() - begin) * 1e3);
  }
  return samples;
}

}  // namespace belfry::bench
