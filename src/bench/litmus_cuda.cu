#include "bench/cuda_launcher.cuh"
#include "bench/litmus_kernels.hpp"

namespace belfry::bench {
namespace {

class CudaLitmus final : public LitmusRunner {
 public:
  explicit CudaLitmus(int gpu) : launcher_(gpu) {}
  std::shared_ptr<void> allocate(std::size_t bytes) override { return launcher_.allocate(bytes); }
  void run(device::Ordering ordering, device::DoorbellMode mode, Grid grid, const LitmusJob& job) override {
    for_each_litmus_policy([&](auto policy) {
      using Policy = decltype(policy);
      if (Policy::ordering == ordering && Policy::doorbell_mode == mode)
        launcher_.launch(grid.blocks, grid.threads, LitmusKernel<Policy>{job});
    });
  }

 private:
  CudaLauncher launcher_;
};

}  // namespace

std::unique_ptr<LitmusRunner> make_litmus_runner(int gpu) { return std::make_unique<CudaLitmus>(gpu); }

}  // namespace belfry::bench
