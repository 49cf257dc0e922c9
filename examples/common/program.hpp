#pragma once
/// \file
/// What every example's main has in common: options, PEs as threads or processes, errors.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "belfry/host/bootstrap.hpp"
#include "belfry/host/device_endpoint.hpp"
#include "belfry/port/time.hpp"
#include "common/report.hpp"

namespace belfry::examples {

/// Who submits to the NIC, and who rings it.
enum class Path : std::uint8_t {
  gda,           ///< device code, both
  cpu_assisted,  ///< device code submits, a CPU thread rings
  proxy,         ///< a CPU worker, both
};

/// What an example's code gets on each PE.
struct Pe {
  host::Bootstrap& bootstrap;
  host::DeviceEndpointOptions options;  ///< device and timeouts as asked for; windows are the example's
  std::chrono::seconds patience;        ///< how long anything may take
  Path path = Path::gda;
  bool on_gpu = false;  ///< where kernels run, else on CPU lanes
  int gpu = 0;          ///< then which, by CUDA's number
  /// Where windows lie: host memory on lanes. On a GPU its own for mini-gda, and for mini-proxy what
  /// --windows says: pinned host memory, or the GPU's.
  std::shared_ptr<host::QueueMemory> window_memory;
  device::MemoryKind window_kind = device::MemoryKind::own;  ///< to the kernels
  /// Of launch(), for as long as the PE lives: letting pinned memory go waits for all kernels of the GPU, and
  /// those of other PEs may wait for this one.
  std::shared_ptr<void> report_memory = nullptr;

  int rank() const { return bootstrap.rank(); }
  int size() const { return bootstrap.size(); }
  /// One PE prints for all.
  bool prints() const { return rank() == 0; }

  port::Timeout timeout() const {
    return port::Timeout::seconds(static_cast<std::uint64_t>(patience.count()));
  }
  /// Waits in a kernel end first, and say more.
  std::chrono::nanoseconds launch_deadline() const { return 3 * patience; }
  /// Windows of these sizes and settings, in window_memory.
  std::vector<host::WindowOptions> placed(std::vector<host::WindowOptions> windows) const;
  /// Memory of at least `bytes` that kernels and the host both reach.
  std::shared_ptr<void> shared_memory(std::size_t bytes) const;
  void barrier() const { bootstrap.barrier(host::deadline_after(2 * patience)); }
};

/// How many PEs an example runs on.
struct PeRange {
  int usual;
  int least;
  int most;
};

class Program {
 public:
  Program(std::string name, std::string description, PeRange pes);
  ~Program();

  /// An option of the example's own, beside --pes, --nic, --lanes, --gpus, --timeout, --rank, --size and
  /// --root.
  void option(const std::string& flag, std::uint64_t& value, std::uint64_t least, std::uint64_t most,
              const std::string& help);

  /// The options --path and --windows, for an example that runs on every transport.
  void path_option();

  /// Parses, then runs `body` on each PE of this process. An exception of one PE ends the others.
  /// \return the exit status: 0 done, 1 a PE failed, 2 the command line is wrong
  int run(int argc, char** argv, const std::function<void(const Pe&)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws host::Error that says what failed, where and why, unless the report is empty.
void throw_if_failed(const Report& report);

/// "mini-gda on mlx5_0 (software NIC)"
std::string describe(const char* transport, const host::Context& context);

}  // namespace belfry::examples
