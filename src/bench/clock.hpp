#pragma once
/// \file
/// A clock cheap enough to time one operation: the processor's counter where it runs at one rate on all
/// cores, std::chrono::steady_clock elsewhere.

#include <chrono>
#include <cstdint>
#include <vector>

#include "bench/kernels/ticks.hpp"

namespace belfry::bench {

class Clock {
 public:
  /// Finds out which counter can be used, and its rate (about 20 ms).
  Clock();

  /// A clock that others read, of known rate.
  Clock(const char* name, double microseconds_per_tick)
      : microseconds_per_tick_(microseconds_per_tick), name_(name) {}

  /// See Ticks::now().
  std::uint64_t now() const { return ticks_.now(); }

  /// The counter alone, for kernels.
  Ticks ticks() const { return ticks_; }

  double microseconds(std::uint64_t ticks) const {
    return static_cast<double>(ticks) * microseconds_per_tick_;
  }
  double seconds(std::uint64_t ticks) const { return microseconds(ticks) / 1e6; }
  std::uint64_t ticks_in(double microseconds) const {
    return static_cast<std::uint64_t>(microseconds / microseconds_per_tick_);
  }

  /// "tsc", "cntvct", "steady_clock", or whose it is.
  const char* name() const { return name_; }

  /// What reading the clock twice in a row measures, in ns: it is part of every sample taken with it.
  /// \param reads number of samples, at least 1
  std::vector<double> overhead_ns(unsigned reads) const;

 private:
  Ticks ticks_;
  double microseconds_per_tick_ = 1e-3;
  const char* name_ = "steady_clock";
};

}  // namespace belfry::bench
