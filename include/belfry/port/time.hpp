#pragma once
/// \file
/// Time on a GPU and on a CPU, and waits that end.

#include <cstdint>

#include "belfry/port/function.hpp"

#if defined(BELFRY_PORT_TIME_HEADER)
#include BELFRY_PORT_TIME_HEADER  // the checker's time
#elif !defined(__CUDA_ARCH__)
#include <chrono>
#endif

namespace belfry::port {

/// A steady clock in ns. On a GPU it is %globaltimer, whose steps can be as long as 1 us.
BELFRY_FN inline std::uint64_t now_ns() {
#if defined(__CUDA_ARCH__)
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
#elif defined(BELFRY_PORT_TIME_HEADER)
  return host_time::now_ns();
#else
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
#endif
}

/// How long a wait may take.
struct Timeout {
  std::uint64_t ns;

  BELFRY_FN static constexpr Timeout nanoseconds(std::uint64_t n) { return {n}; }
  BELFRY_FN static constexpr Timeout microseconds(std::uint64_t n) { return {n * 1000}; }
  BELFRY_FN static constexpr Timeout milliseconds(std::uint64_t n) { return {n * 1000000}; }
  BELFRY_FN static constexpr Timeout seconds(std::uint64_t n) { return {n * 1000000000}; }
};

/// Counts a waiting loop's turns and says when its time is over. The clock starts at the first turn, so that
/// a wait which has nothing to wait for never reads it, and is read again only once in many turns.
class Patience {
 public:
  BELFRY_FN constexpr explicit Patience(Timeout timeout) : timeout_ns_(timeout.ns) {}

  /// To be asked once a turn. \return whether the time is over
  BELFRY_FN bool is_over() {
    if (turns_++ % kTurnsBetweenLooks != 0) return false;
    const std::uint64_t now = now_ns();
    if (start_ns_ == 0) start_ns_ = now;
    return now - start_ns_ >= timeout_ns_;
  }

 private:
  static constexpr std::uint32_t kTurnsBetweenLooks = 16;
  std::uint64_t timeout_ns_;
  std::uint64_t start_ns_ = 0;
  std::uint32_t turns_ = 0;
};

/// What is left of a call's time, for a call that waits several times. It reads the clock: a call that waits
/// once has no need of it.
class CallTime {
 public:
  BELFRY_FN explicit CallTime(Timeout timeout) : timeout_ns_(timeout.ns), start_ns_(now_ns()) {}

  BELFRY_FN Timeout left() const {
    const std::uint64_t spent = now_ns() - start_ns_;
    return {spent < timeout_ns_ ? timeout_ns_ - spent : 0};
  }

 private:
  std::uint64_t timeout_ns_;
  std::uint64_t start_ns_;
};

}  // namespace belfry::port
