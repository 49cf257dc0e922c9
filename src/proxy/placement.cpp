#include "proxy/placement.hpp"

#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>

#include <memory>

namespace belfry::proxy {

namespace {

struct FreeTopology {
  void operator()(hwloc_topology_t t) const { hwloc_topology_destroy(t); }
};
struct FreeBitmap {
  void operator()(hwloc_bitmap_t b) const { hwloc_bitmap_free(b); }
};
using Topology = std::unique_ptr<hwloc_topology, FreeTopology>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  if (hwloc_topology_load(raw) != 0) return nullptr;
  return topology;
}

std::vector<int> members(hwloc_const_bitmap_t set) {
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

CpuChoice choose_cpus(const host::Context& context, std::uint32_t workers, bool wanted) {
  if (!wanted) return {{}, "worker CPUs: not pinned, as requested"};
  const Topology topology = load_topology();
  const Bitmap mine(hwloc_bitmap_alloc());
  if (!topology || !mine || hwloc_get_cpubind(topology.get(), mine.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return {{}, "worker CPUs: not pinned, for hwloc cannot tell this process's CPUs"};
  const auto allowed = static_cast<std::size_t>(hwloc_bitmap_weight(mine.get()));
  if (allowed < std::size_t{workers} + 1)
    return {{},
            "worker CPUs: not pinned, for this process may use " + std::to_string(allowed) + " and has " +
                std::to_string(workers) + " workers"};
  const Bitmap near(hwloc_bitmap_alloc());
  const bool known =
      near && hwloc_ibv_get_device_cpuset(topology.get(), context.get()->device, near.get()) == 0;
  if (known) hwloc_bitmap_and(near.get(), near.get(), mine.get());
  const bool useful = known && hwloc_bitmap_weight(near.get()) > 0;
  std::vector<int> cpus = members(useful ? near.get() : mine.get());
  std::string list;
  for (std::size_t i = 0; i < cpus.size() && i < workers; ++i)
    list += (i == 0 ? "" : ", ") + std::to_string(cpus[i]);
  return {std::move(cpus), "worker CPUs: " + list +
                               (useful ? ", near " : ", of all that may be used: nothing is known of ") +
                               context.device_name()};
}

}  // namespace belfry::proxy
