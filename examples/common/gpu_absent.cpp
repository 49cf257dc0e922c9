#include "belfry/host/errors.hpp"
#include "common/gpu.hpp"

namespace belfry::examples {
namespace {

[[noreturn]] void refuse() {
  throw host::Error(host::ErrorKind::unsupported, "--lanes cuda: belfry was built without nvcc",
                    "Build it where nvcc is installed, or leave --lanes out");
}

}  // namespace

std::shared_ptr<host::QueueMemory> gpu_memory(int) { refuse(); }
std::shared_ptr<host::QueueMemory> pinned_memory(int) { refuse(); }
host::Placement gpu_placement(int) { refuse(); }

}  // namespace belfry::examples
