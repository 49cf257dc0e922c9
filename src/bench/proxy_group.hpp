#pragma once
/// \file
/// PEs in this process, connected by mini-proxy: PE 0 measures, the others are there to be written to.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "belfry/host/bootstrap.hpp"
#include "belfry/host/windows.hpp"
#include "belfry/proxy/endpoint.hpp"
#include "bench/experiment.hpp"

namespace belfry::bench {

/// The options that all experiments on mini-proxy begin with: workers that wait as the machine allows, where
/// the system puts them, for the ends of one machine would all choose the same CPUs. \param crowded workers,
/// pollers and NIC threads are more than the cores: an idle worker gives way at once
proxy::EndpointOptions proxy_options(bool crowded);

/// The same for a PE that is only written to: its workers are hardly there.
proxy::EndpointOptions resting_options(proxy::EndpointOptions options);

/// Puts rings and what device code keeps of them where the kernels of a rank reach them: for a GPU, into
/// pinned host memory and its own.
void place_for_lanes(const RunContext& run, std::size_t rank, proxy::EndpointOptions& options);

class ProxyGroup {
 public:
  /// Opens the device and connects. The window lies where the run says: in host memory, which the run's
  /// kernels reach too, or in the GPU's. Throws host::Error. \param options of each rank; what the ranks must
  /// agree on is alike
  ProxyGroup(const RunContext& run, int pes, std::size_t window_bytes,
             const std::function<proxy::EndpointOptions(std::size_t rank)>& options);

  const proxy::Endpoint& pe(int rank) const { return *pes_[static_cast<std::size_t>(rank)].endpoint; }
  const host::Context& context() const { return pes_.front().windows->domain().context(); }
  /// A copy of a PE's window 0.
  std::vector<std::byte> read_window(int rank) const;
  /// Changes it. \pre nobody else does
  void edit_window(int rank, const std::function<void(std::span<std::byte>)>& edit) const;

 private:
  struct Pe {
    std::shared_ptr<host::QueueMemory> gpu_memory;  ///< of its window; null: a CPU reaches it
    std::unique_ptr<host::Windows> windows;
    std::unique_ptr<proxy::Endpoint> endpoint;
  };
  std::span<std::byte> window(int rank) const {
    return pes_[static_cast<std::size_t>(rank)].windows->memory(0).span();
  }

  std::vector<std::unique_ptr<host::Bootstrap>> members_;
  std::vector<Pe> pes_;
};

}  // namespace belfry::bench
