#pragma once
/// \file
/// Host memory that the engine may touch stays pinned for as long as something names it.

#include <vector>

#include "softnic/gpu/gpu_engine.hpp"

namespace belfry::softnic {

/// Ranges as whole pages, those that share one joined: the same page cannot be pinned twice.
std::vector<HostRange> join_pages(std::vector<HostRange> ranges);

class GpuPins {
 public:
  /// Pins what `wanted` names and is not pinned, and lets go of the rest.
  /// \return the page ranges that could not be pinned
  std::vector<HostRange> update(GpuEngine& engine, const std::vector<HostRange>& wanted);

 private:
  struct Held {
    HostRange range;
    bool ours = false;
  };
  std::vector<Held> held_;
};

/// Whether two ranges have a byte in common.
bool overlap(const HostRange& a, const HostRange& b);

}  // namespace belfry::softnic
