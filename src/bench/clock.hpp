#pragma once
/// \file
/// A clock cheap enough to time one operation: the processor's counter where it runs at one rate on all
/// cores, std::chrono::steady_clock elsewhere.

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "bench/statistics.hpp"

namespace belfry::bench {

class Clock {
 public:
  /// Finds out which counter can be used, and its rate (about 20 ms).
  Clock();

  /// Ticks since some fixed moment. Instructions before it have executed when it reads the counter; stores
  /// may still be on their way to memory.
  std::uint64_t now() const {
#if defined(__x86_64__)
    if (counter_) {
      _mm_lfence();
      return __rdtsc();
    }
#elif defined(__aarch64__)
    if (counter_) {
      std::uint64_t ticks;
      asm volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
      return ticks;
    }
#endif
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  double microseconds(std::uint64_t ticks) const {
    return static_cast<double>(ticks) * microseconds_per_tick_;
  }
  double seconds(std::uint64_t ticks) const { return microseconds(ticks) / 1e6; }

  /// "tsc", "cntvct" or "steady_clock".
  const char* name() const { return name_; }

  /// What reading the clock twice in a row measures, in ns: it is part of every sample taken with it.
  /// \param reads number of samples, at least 1
  std::vector<double> overhead_ns(unsigned reads) const;

 private:
  bool counter_ = false;
  double microseconds_per_tick_ = 1e-3;
  const char* name_ = "steady_clock";
};

}  // namespace belfry::bench
