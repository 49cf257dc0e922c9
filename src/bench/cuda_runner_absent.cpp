#include <stdexcept>

#include "bench/kernel_runner.hpp"

namespace belfry::bench {

std::unique_ptr<KernelRunner> make_cuda_runner() {
  throw std::invalid_argument(
      "--lanes cuda: belfry was built without nvcc; build it where nvcc is installed");
}

}  // namespace belfry::bench
