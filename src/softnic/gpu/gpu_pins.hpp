#pragma once
/// \file
/// Host memory that an engine may touch stays pinned for as long as something names it.

#include <map>
#include <mutex>
#include <vector>

#include "softnic/gpu/gpu_engine.hpp"

namespace belfry::softnic {

/// Ranges as whole pages, those that share one joined: the same page cannot be pinned twice.
std::vector<HostRange> join_pages(std::vector<HostRange> ranges);

/// Engines of several GPUs share it, for CUDA pins a page for all of them at once. Any thread.
class GpuPins {
 public:
  /// Pins what `wanted` names and is not pinned, and lets go of what no engine names any more.
  /// \param wanted what `engine` touches from here on \pre `engine` does not run
  /// \return the page ranges that could not be pinned
  std::vector<HostRange> update(GpuEngine& engine, const std::vector<HostRange>& wanted);

 private:
  bool is_stale(const HostRange& held, const GpuEngine& engine) const;
  std::vector<HostRange> not_held(const HostRange& wanted) const;

  std::mutex mutex_;
  std::map<const GpuEngine*, std::vector<HostRange>> wanted_;  ///< whole pages
  std::vector<HostRange> held_;                                ///< what we pinned
};

/// Whether two ranges have a byte in common.
bool overlap(const HostRange& a, const HostRange& b);

}  // namespace belfry::softnic
