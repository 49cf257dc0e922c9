#include "host/cpu_choice.hpp"

#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>
#include <pthread.h>
#include <sched.h>

#include <memory>

namespace belfry::host {

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

CpuChoice choose_cpus(const Context& context, const std::string& who, std::uint32_t threads, bool wanted) {
  const std::string subject = who + " CPUs: ";
  if (!wanted) return {{}, subject + "not pinned, as requested"};
  const Topology topology = load_topology();
  const Bitmap mine(hwloc_bitmap_alloc());
  if (!topology || !mine || hwloc_get_cpubind(topology.get(), mine.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return {{}, subject + "not pinned, for hwloc cannot tell this process's CPUs"};
  const auto allowed = static_cast<std::size_t>(hwloc_bitmap_weight(mine.get()));
  if (allowed < std::size_t{threads} + 1)
    return {{},
            subject + "not pinned, for this process may use " + std::to_string(allowed) + " and has " +
                std::to_string(threads) + " " + who + (threads == 1 ? "" : "s")};
  const Bitmap near(hwloc_bitmap_alloc());
  const bool known =
      near && hwloc_ibv_get_device_cpuset(topology.get(), context.get()->device, near.get()) == 0;
  if (known) hwloc_bitmap_and(near.get(), near.get(), mine.get());
  const bool useful = known && hwloc_bitmap_weight(near.get()) > 0;
  std::vector<int> cpus = members(useful ? near.get() : mine.get());
  std::string list;
  for (std::size_t i = 0; i < cpus.size() && i < threads; ++i)
    list += (i == 0 ? "" : ", ") + std::to_string(cpus[i]);
  return {std::move(cpus), subject + list +
                               (useful ? ", near " : ", of all that may be used: nothing is known of ") +
                               context.device_name()};
}

void settle_thread(const std::string& name, int cpu) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace belfry::host
