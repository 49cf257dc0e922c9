#pragma once
/// \file
/// The kernels of the experiment `litmus`, as its host part starts them.

#include "belfry/device/policy.hpp"
#include "bench/kernel_runner.hpp"
#include "bench/kernels/litmus.hpp"

namespace belfry::bench {

template <device::Ordering ordering_, device::DoorbellMode mode_>
struct LitmusPolicy : device::DefaultPolicy {
  static constexpr device::Ordering ordering = ordering_;
  static constexpr device::DoorbellMode doorbell_mode = mode_;
  static constexpr device::Payload payload = device::Payload::pointer;
  static constexpr bool assume_doorbell_only = true;
  static constexpr bool unsafe_control = ordering_ == device::Ordering::none;
  static constexpr bool check_arguments = false;
};

/// Calls `visit(policy)` for every ordering in both modes, but those that are the same in no_record mode.
template <class Visit>
void for_each_litmus_policy(const Visit& visit) {
  using device::Ordering;
  constexpr auto kRecord = device::DoorbellMode::record;
  constexpr auto kNoRecord = device::DoorbellMode::no_record;
  visit(LitmusPolicy<Ordering::none, kRecord>{});
  visit(LitmusPolicy<Ordering::gpu_fence, kRecord>{});
  visit(LitmusPolicy<Ordering::gpu_fence_record, kRecord>{});
  visit(LitmusPolicy<Ordering::gpu_release, kRecord>{});
  visit(LitmusPolicy<Ordering::threadfence, kRecord>{});
  visit(LitmusPolicy<Ordering::system_release, kRecord>{});
  visit(LitmusPolicy<Ordering::system_fence, kRecord>{});
  visit(LitmusPolicy<Ordering::none, kNoRecord>{});
  visit(LitmusPolicy<Ordering::gpu_fence, kNoRecord>{});
  visit(LitmusPolicy<Ordering::gpu_release, kNoRecord>{});
  visit(LitmusPolicy<Ordering::threadfence, kNoRecord>{});
  visit(LitmusPolicy<Ordering::system_release, kNoRecord>{});
  visit(LitmusPolicy<Ordering::system_fence, kNoRecord>{});
}

/// Runs the kernel of a policy, and returns when it has ended; results are in pinned memory of `allocate`.
/// Throws std::runtime_error for a launch that failed.
class LitmusRunner {
 public:
  virtual ~LitmusRunner() = default;
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  virtual void run(device::Ordering ordering, device::DoorbellMode mode, Grid grid, const LitmusJob& job) = 0;
};

/// Throws as make_cuda_runner().
std::unique_ptr<LitmusRunner> make_litmus_runner(int gpu);

}  // namespace belfry::bench
