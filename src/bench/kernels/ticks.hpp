#pragma once
/// \file
/// A counter cheap enough to time one operation, on whatever runs the code. bench/clock.hpp knows its rate.

#include <cstdint>

#include "belfry/port/function.hpp"

#if !defined(__CUDA_ARCH__)
#include <chrono>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#endif

namespace belfry::bench {

class Ticks {
 public:
  Ticks() = default;
  /// \param counter whether the CPU's counter runs at one rate on all cores; else steady_clock is read
  BELFRY_FN constexpr explicit Ticks(bool counter) : counter_(counter) {}

  /// Ticks since some fixed moment. Instructions before it have executed when it reads the counter; stores
  /// may still be on their way to memory. On a GPU: clock cycles of the multiprocessor.
  BELFRY_FN std::uint64_t now() const {
#if defined(__CUDA_ARCH__)
    return static_cast<std::uint64_t>(clock64());
#else
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
#endif
  }

 private:
  bool counter_ = false;
};

}  // namespace belfry::bench
