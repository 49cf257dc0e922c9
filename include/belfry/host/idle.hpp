#pragma once
/// \file
/// What a thread that polls does while there is nothing to do.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "belfry/port/lane.hpp"

namespace belfry::host {

struct IdlePolicy {
  enum class Kind : std::uint8_t {
    spin,   ///< never gives its core away
    yield,  ///< spins a little, then lets others run
    sleep,  ///< and after that sleeps, in steps that double up to `longest`
  };
  Kind kind = Kind::yield;
  std::uint32_t spins = 2000;               ///< empty rounds before the first yield
  std::uint32_t yields = 1000;              ///< empty rounds before the first sleep
  std::chrono::microseconds longest{1000};  ///< between two looks
};

class Idler {
 public:
  explicit Idler(const IdlePolicy& policy) : policy_(policy) {}

  void work_came() { empty_ = 0; }

  /// An empty round.
  void rest() {
    ++empty_;
    if (policy_.kind == IdlePolicy::Kind::spin || empty_ <= policy_.spins) {
      port::pause_lane();
      return;
    }
    const std::uint64_t beyond = empty_ - policy_.spins;
    if (policy_.kind == IdlePolicy::Kind::yield || beyond <= policy_.yields) {
      std::this_thread::yield();
      return;
    }
    const std::uint64_t steps = std::min<std::uint64_t>(beyond - policy_.yields, 20);
    std::this_thread::sleep_for(std::min(policy_.longest, std::chrono::microseconds(1ll << steps)));
  }

 private:
  IdlePolicy policy_;
  std::uint64_t empty_ = 0;
};

}  // namespace belfry::host
