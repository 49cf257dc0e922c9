
#include <chrono>
#include <cstring>
#include <new>

#include "belfry/lanes/launch.hpp"
#include "bench/kernels/runner_of.hpp"

namespace belfry::bench {
namespace {

/// A launch may be a long measurement: its own waits have shorter ends.
constexpr std::chrono::minutes kLaunchLimit{30};
constexpr std::size_t kAlignment = 64;

class LaneLauncher {
 public:
  explicit LaneLauncher(bool gives_way) : gives_way_(gives_way) {}

  const char* name() const { return "lanes"; }

  std::shared_ptr<void> allocate(std::size_t bytes) const {
    void* memory = ::operator new (bytes, std::align_val_t{kAlignment});
    std::memset(memory, 0, bytes);
    return {memory, [](void* at) { ::operator delete (at, std::align_val_t{kAlignment}); }};
  }

  std::shared_ptr<void> place(const void* contents, std::size_t bytes) const {
    std::shared_ptr<void> memory = allocate(bytes);
    std::memcpy(memory.get(), contents, bytes);
    return memory;
  }

  Clock clock() const { return Clock(); }

  template <class Kernel>
  void launch(std::uint32_t blocks, std::uint32_t threads, const Kernel& kernel) const {
    lanes::LaunchOptions options;
    options.name = "measured kernel";
    options.deadline = kLaunchLimit;
    options.cpu_threads = 1024;
    options.gives_way = gives_way_;
    // A new thread would start wherever the system likes, on the NIC's core for one, and a pass is over
    // before the two are apart. This one has its place already, and the verbs arms have the same.
    options.caller_runs = true;
    lanes::launch({blocks, threads}, options, kernel);
  }

 private:
  bool gives_way_;
};

}  // namespace

std::unique_ptr<KernelRunner> make_lane_runner(bool gives_way) {
  return std::make_unique<RunnerOf<LaneLauncher>>(gives_way);
}

}  // namespace belfry::bench
