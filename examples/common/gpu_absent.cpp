#include "belfry/host/errors.hpp"
#include "common/gpu.hpp"

namespace belfry::examples {
namespace {

[[noreturn]] void refuse() {
  throw host::Error(host::ErrorKind::unsupported, "--lanes cuda: belfry was built without nvcc",
                    "Build it where nvcc is installed, or leave --lanes out");
}

}  // namespace

std::shared_ptr<host::QueueMemory> gpu_memory() { refuse(); }
std::shared_ptr<host::QueueMemory> pinned_memory() { refuse(); }
host::Placement gpu_placement() { refuse(); }

}  // namespace belfry::examples
