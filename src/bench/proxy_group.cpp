#include "bench/proxy_group.hpp"

#include "belfry/host/endpoint.hpp"
#include "belfry/host/environment.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "bench/device_group.hpp"
#include "bench/gpu_window.hpp"
#include "bench/kernels/jobs.hpp"

namespace belfry::bench {

proxy::EndpointOptions proxy_options(bool crowded) {
  proxy::EndpointOptions options;
  options.connection = host::EndpointOptions::from(host::Environment::of_this_process()).connection;
  be_patient(options.connection);
  options.pin = false;
  options.idle.kind = crowded ? proxy::IdlePolicy::Kind::yield : proxy::IdlePolicy::Kind::spin;
  options.idle.spins = 0;
  // A worker that waits for a core is not lost.
  options.stall = std::chrono::seconds(kKernelWaitSeconds);
  return options;
}

proxy::EndpointOptions resting_options(proxy::EndpointOptions options) {
  options.workers = 1;
  options.idle = {.kind = proxy::IdlePolicy::Kind::sleep, .spins = 0, .yields = 0};
  return options;
}

void place_for_lanes(const RunContext& run, std::size_t rank, proxy::EndpointOptions& options) {
  if (!on_gpu(run)) return;
  options.ring_memory = pinned_memory();
  options.state = {device::MemoryKind::own, gpu_memory(gpu_of(run, rank))};
  if (run.options().counters_place == "gpu") options.counter_memory = options.state;
}

ProxyGroup::ProxyGroup(const RunContext& run, int pes, std::size_t window_bytes,
                       const std::function<proxy::EndpointOptions(std::size_t rank)>& options)
    : members_(host::make_thread_bootstrap(pes)), pes_(members_.size()) {
  on_each_rank(members_, [&](std::size_t rank, host::Bootstrap& member) {
    auto context = host::EndpointOptions::from(host::Environment::of_this_process()).context;
    context.nic = run.options().nic;
    const host::ProtectionDomain domain(host::Context::open(context));
    host::WindowOptions window{.bytes = window_bytes};
    if (on_gpu(run) && run.options().window_place == "gpu") {
      window.memory = pes_[rank].gpu_memory = gpu_memory(gpu_of(run, rank));
    } else if (on_gpu(run)) {
      window.memory = pinned_memory();
      window.kind = device::MemoryKind::host;
    }
    proxy::EndpointOptions placed = options(rank);
    place_for_lanes(run, rank, placed);
    pes_[rank].windows = std::make_unique<host::Windows>(member, domain, std::span(&window, 1));
    pes_[rank].endpoint = std::make_unique<proxy::Endpoint>(member, *pes_[rank].windows, placed);
  });
}

std::vector<std::byte> ProxyGroup::read_window(int rank) const {
  const std::span<std::byte> window = this->window(rank);
  const auto& memory = pes_[static_cast<std::size_t>(rank)].gpu_memory;
  if (memory == nullptr) return {window.begin(), window.end()};
  std::vector<std::byte> copy(window.size());
  memory->read(copy.data(), window.data(), window.size());
  return copy;
}

void ProxyGroup::edit_window(int rank, const std::function<void(std::span<std::byte>)>& edit) const {
  const std::span<std::byte> window = this->window(rank);
  const auto& memory = pes_[static_cast<std::size_t>(rank)].gpu_memory;
  if (memory == nullptr) return edit(window);
  std::vector<std::byte> copy = read_window(rank);
  edit(copy);
  memory->write(window.data(), copy.data(), copy.size());
}

}  // namespace belfry::bench
