#pragma once
/// \file
/// Which CPUs the threads run on that serve device code.

#include <string>
#include <vector>

#include "belfry/host/context.hpp"

namespace belfry::host {

struct CpuChoice {
  std::vector<int> cpus;  ///< for thread 0, 1, ... in turns; empty: not pinned
  std::string decision;   ///< one line, with the reason

  /// \return -1: wherever the system puts it
  int of(std::size_t thread) const { return cpus.empty() ? -1 : cpus[thread % cpus.size()]; }
};

/// CPUs near the device, as hwloc knows it, within this process's affinity mask. Where nothing is known of
/// the device all of the mask is near; where the mask has fewer CPUs than there are threads and one for the
/// caller, nobody is pinned.
/// \param who what the threads are, for the decision: "worker"
CpuChoice choose_cpus(const Context& context, const std::string& who, std::uint32_t threads, bool wanted);

/// Names the calling thread, and pins it unless `cpu` is negative. A wish: where the system refuses (a CPU
/// that is not ours), the thread runs where it is put.
void settle_thread(const std::string& name, int cpu);

}  // namespace belfry::host
