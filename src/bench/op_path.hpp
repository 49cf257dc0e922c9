#pragma once
/// \file
/// What the ways of posting have in common that `op` compares, and where in the window they write.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/target.hpp"

namespace belfry::bench {

// The window of each end: target, then the flag on a cache line of its own, then the sources of writes.
inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kFlagOffset = (kTargetBytes + kCacheLine - 1) / kCacheLine * kCacheLine;
inline constexpr std::size_t kSourceOffset = kFlagOffset + kCacheLine;
inline constexpr std::size_t kSources = 64;
inline constexpr std::size_t kWindowBytes = kSourceOffset + kSources * kSlotBytes;

/// How many operations go ahead of `count` recorded ones: caches, branch predictors and the NIC's thread wake
/// up.
std::uint64_t warm_up_of(std::uint64_t count);

/// Samples of one pass, us.
struct PutSamples {
  std::vector<double> issue;           ///< in the call that posts
  std::vector<double> put_completion;  ///< from before that call to knowing that the write is complete
  bool verified = false;
};
struct RoundTripSamples {
  std::vector<double> round_trip;  ///< from before the call to having seen the peer's reply in memory
  bool verified = false;
};

/// One way of posting, at one end. Operation i carries target_value(seed, i) as 8 B.
class OpPath {
 public:
  virtual ~OpPath() = default;

  /// Writes to the peer's target, one outstanding: warm_up_of(count) and then `count` that are recorded.
  virtual void puts(std::uint64_t count, PutSamples& samples) = 0;
  /// As many round trips, each a write to the peer's flag and one back. Sets `verified` to false where the
  /// answer is another value.
  virtual void round_trips(std::uint64_t count, RoundTripSamples& samples) = 0;
  /// Answers them.
  virtual void echo(std::uint64_t count) = 0;
};

}  // namespace belfry::bench
