#pragma once
/// \file
/// What runs the measured kernels (src/bench/kernels): CPU lanes, or a GPU.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/clock.hpp"
#include "bench/kernels/jobs.hpp"

namespace belfry::bench {

struct Grid {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;  ///< in a block
};

/// Each call returns when its kernel has ended; how it ended is in the job's KernelEnd. Throws
/// std::invalid_argument for an arm that has no kernel, std::runtime_error for a launch that failed.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;

  /// "lanes"
  virtual const char* name() const = 0;
  /// Memory that kernels and, while none runs, the host read and write; zeroed.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  /// Memory that belongs to kernels alone, as near to them as it can be, with these contents.
  virtual std::shared_ptr<void> place(const void* contents, std::size_t bytes) = 0;

  /// The clock of what runs the kernels.
  virtual Clock clock() = 0;

  // \param arm of for_each_op_arm(); of for_each_proxy_arm() where the job is mini-proxy's
  virtual void puts(const std::string& arm, const PutJob& job) = 0;
  virtual void puts(const std::string& arm, const ProxyPutJob& job) = 0;
  virtual void round_trips(const std::string& arm, const FlagJob& job) = 0;
  virtual void round_trips(const std::string& arm, const ProxyFlagJob& job) = 0;
  virtual void echo(const std::string& arm, const FlagJob& job) = 0;
  virtual void echo(const std::string& arm, const ProxyFlagJob& job) = 0;
  virtual void doorbells(const DoorbellJob& job) = 0;

  virtual void scope(CompletionScope scope, const ScopeJob& job) = 0;
  virtual void rate(const RateKind& kind, Grid grid, const RateJob& job) = 0;
  /// Each thread on a ring of its own, tuned and payload_visible. \param from_memory payload that lies in the
  /// window, visible, in place of values from registers
  virtual void rate(bool from_memory, Grid grid, const ProxyRateJob& job) = 0;
  /// Payload that the kernel makes, one write at a time; of mini-proxy payload_published.
  virtual void payload(PayloadForm form, const PutJob& job) = 0;
  virtual void payload(PayloadForm form, const ProxyPutJob& job) = 0;
  /// Warps of one block on one queue.
  virtual void publication(PublicationKind kind, Grid grid, const PublicationJob& job) = 0;
  /// \param blocks of background, all at the same time, besides the probe's. Two of these run at once, one an
  /// end.
  virtual void loaded(bool shared, std::uint32_t blocks, const LoadedJob& job) = 0;
  virtual void loaded(bool shared, std::uint32_t blocks, const ProxyLoadedJob& job) = 0;
  /// \param grid as many threads as rings; of a job of bursts it means nothing
  virtual void handoff(HandoffPutKind kind, Grid grid, const HandoffJob& job) = 0;
};

/// On CPU threads of this process (src/lanes).
/// \param gives_way whether a lane that waits gives its core away at once: PollPolicy::yields
std::unique_ptr<KernelRunner> make_lane_runner(bool gives_way);

/// On a GPU, by CUDA's number. Throws std::invalid_argument in a build without CUDA, std::runtime_error where
/// there is no such GPU.
std::unique_ptr<KernelRunner> make_cuda_runner(int gpu);

/// `count` T of a runner's memory, all bytes 0: for types for which that is a value.
template <class T>
std::shared_ptr<T> allocate_of(KernelRunner& runner, std::size_t count) {
  return std::static_pointer_cast<T>(runner.allocate(count * sizeof(T)));
}

/// The same of memory that belongs to kernels alone, with the contents of `items`.
template <class T>
std::shared_ptr<T> place_of(KernelRunner& runner, std::span<const T> items) {
  return std::static_pointer_cast<T>(runner.place(items.data(), items.size_bytes()));
}

/// What a kernel's clock measured, in us.
std::vector<double> to_microseconds(const std::uint64_t* ticks, std::uint64_t count, const Clock& clock);

/// Throws host::Error that says how the kernel failed, unless it ended well.
/// \param what it was doing, "mini-gda's puts"
void check_end(const KernelEnd& end, const std::string& what);

}  // namespace belfry::bench
