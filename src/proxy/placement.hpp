#pragma once
/// \file
/// Which CPUs the workers run on.

#include <string>
#include <vector>

#include "belfry/host/context.hpp"

namespace belfry::proxy {

struct CpuChoice {
  std::vector<int> cpus;  ///< for worker 0, 1, ... in turns; empty: not pinned
  std::string decision;   ///< one line, with the reason
};

/// CPUs near the device, as hwloc knows it, within this process's affinity mask. Where nothing is known of
/// the device all of the mask is near; where the mask has fewer CPUs than there are workers and one for the
/// caller, nobody is pinned.
CpuChoice choose_cpus(const host::Context& context, std::uint32_t workers, bool wanted);

}  // namespace belfry::proxy
