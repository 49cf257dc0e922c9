#pragma once
/// \file
/// Who posts in an arm of the experiment `rate`, and what has to be in the target afterwards.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/kernel_runner.hpp"

namespace belfry::bench {

struct RateShape {
  std::uint32_t threads = 1;  ///< of the whole grid
  std::uint32_t queues = 1;
  std::uint32_t blocks = 1;
  std::uint32_t batch = 1;  ///< WQEs a doorbell
  Cooperation cooperation = Cooperation::thread;
  bool no_record = false;  ///< doorbells without a record; for threads and warps with queues of their own

  Grid grid() const { return {blocks, threads / blocks}; }
  /// Warps, of which the last of a block may be short.
  std::uint32_t warps() const;
  /// Threads, or warps where these post as one.
  std::uint32_t posters() const { return cooperation == Cooperation::warp ? warps() : threads; }
  RateKind kind() const;
};

/// Throws std::invalid_argument, saying what to change, for a shape that no kernel can run.
void check(const RateShape& shape);

/// "thread", "lock", "handoff", "warp": Cooperation, in its order.
const std::vector<std::string>& cooperation_names();

struct RateArm {
  const char* name;
  const char* description;
  const char* reference;  ///< published row
  RateShape shape;
};

/// The arms: first the published table row by row.
const std::vector<RateArm>& rate_arms();

/// The largest that an arm of the user's own may be.
inline constexpr std::uint32_t kMostRateThreads = 4096;
inline constexpr std::uint32_t kMostRateQueues = 1024;
inline constexpr std::uint32_t kMostRateBatch = 256;

/// Fills a target so that whatever is not written shows.
void clear_rate_target(std::span<std::byte> window, const RateWork& job, std::uint32_t threads);

/// Whether each thread's slots hold exactly what its messages leave.
/// \param source the window that payload came from, where it did not come from registers; else empty
bool rate_target_is_right(std::span<const std::byte> window, std::span<const std::byte> source,
                          const RateWork& job, std::uint32_t threads);

}  // namespace belfry::bench
