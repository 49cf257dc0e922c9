#pragma once
/// \file
/// One measurement of a rate: `rate` and `inline` share it.

#include <functional>
#include <span>
#include <string>

#include "bench/device_group.hpp"
#include "bench/rate_shape.hpp"

namespace belfry::bench {

struct RateFigure {
  double rate = 0;  ///< M msg/s, from the first thread's start to the last one's end
  std::uint64_t messages = 0;
  bool verified = false;
};

/// Who runs a job, and on which memory.
struct RateGround {
  std::uint32_t threads = 1;
  bool from_memory = false;  ///< payload comes from PE 0's window, and not from registers
  /// A copy of a PE's window.
  std::function<std::vector<std::byte>(int rank)> read_window;
  /// Lets its argument change the window of PE 1, the peer.
  std::function<void(const std::function<void(std::span<std::byte>)>&)> edit_target;
};

/// Completes the job (peer 1, messages, results), runs it, and looks at what it has left.
/// Throws host::Error for a kernel that did not end well.
/// \param what for messages: the arm
template <class View>
RateFigure measure_threads(KernelRunner& runner, const RateGround& ground, RateJobOf<View> job,
                           std::uint64_t messages, const std::string& what,
                           const std::function<void(const RateJobOf<View>&)>& launch);

/// What one thread may have outstanding in its target before it begins again.
inline constexpr std::uint32_t kRateSlots = 64;

/// Posts at least `messages` messages from PE 0 to PE 1. The group has the shape's queues, and the job says
/// target, source, bytes and seed; the rest of it is filled in here.
/// Throws host::Error for a kernel that did not end well.
/// \param what for messages: the arm
RateFigure measure_rate(const DeviceGroup& group, KernelRunner& runner, const RateShape& shape,
                        const RateKind& kind, RateJob job, std::uint64_t messages, const std::string& what);

}  // namespace belfry::bench
