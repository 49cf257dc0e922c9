#include <stdexcept>

#include "bench/kernel_runner.hpp"
#include "bench/litmus_kernels.hpp"
#include "bench/residency_kernels.hpp"

namespace belfry::bench {
namespace {

[[noreturn]] void refuse() {
  throw std::invalid_argument(
      "--lanes cuda: belfry was built without nvcc; build it where nvcc is installed");
}

}  // namespace

std::unique_ptr<KernelRunner> make_cuda_runner(int) { refuse(); }
std::unique_ptr<LitmusRunner> make_litmus_runner(int) { refuse(); }
std::unique_ptr<ResidencyRunner> make_residency_runner(int) { refuse(); }

}  // namespace belfry::bench
