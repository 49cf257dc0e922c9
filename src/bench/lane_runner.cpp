#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <new>

#include "belfry/host/errors.hpp"
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

void check_end(const KernelEnd& end, const std::string& what) {
  const device::Outcome& outcome = end.outcome;
  if (outcome.ok()) return;
  const std::string message = fmt::format("{} ended with: {}", what, device::status_name(outcome.status));
  if (outcome.status == device::Status::completion_error) {
    throw host::Error(host::ErrorKind::completion,
                      fmt::format("{} (QP {}, WQE {}, syndrome 0x{:02x}, vendor syndrome 0x{:02x})", message,
                                  outcome.fault.qpn, outcome.fault.index,
                                  static_cast<unsigned>(outcome.fault.syndrome), outcome.fault.vendor),
                      "The NIC refused a WQE; the syndrome says why");
  }
  throw host::Error(
      host::ErrorKind::timed_out, message,
      fmt::format("A kernel waits {} s for one event: the NIC or the other end is gone or stuck",
                  kKernelWaitSeconds));
}

}  // namespace belfry::bench
