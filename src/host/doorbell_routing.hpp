#pragma once
/// \file
/// Where device code rings each queue of an endpoint, and the thread behind it where a CPU forwards.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "belfry/device/view.hpp"
#include "belfry/host/devx_queue.hpp"
#include "belfry/host/doorbell_path.hpp"
#include "belfry/host/placement.hpp"
#include "host/doorbell_forwarder.hpp"

namespace belfry::host {

class DoorbellRouting {
 public:
  DoorbellRouting() = default;
  /// \param placement with all its memory resolved
  /// \param queues    by slot; null where there is none. They outlive this.
  /// Throws Error: unsupported (gpu_rung, and a register that device code cannot reach), or what a provider
  /// of memory throws.
  DoorbellRouting(const Context& context, DoorbellPath path, const Placement& placement,
                  const ForwarderOptions& options, std::span<const std::unique_ptr<DevxQueue>> queues);

  /// SendQueue::doorbell and SendQueue::forwarder of a slot that has a queue.
  std::uint64_t* doorbell(std::size_t slot) const { return doorbells_[slot]; }
  const device::ForwarderWords* words() const { return words_; }

  /// gpu_rung or cpu_assisted.
  DoorbellPath path() const { return path_; }
  const std::vector<std::string>& decisions() const { return decisions_; }
  /// Null unless a CPU forwards.
  const DoorbellForwarder* forwarder() const { return forwarder_.get(); }

 private:
  using Queues = std::span<const std::unique_ptr<DevxQueue>>;
  void map_registers(RegisterMapper& mapper, Queues queues);
  void forward(const Context& context, const Placement& placement, const ForwarderOptions& options,
               Queues queues);

  DoorbellPath path_ = DoorbellPath::gpu_rung;
  std::vector<std::uint64_t*> doorbells_;  ///< by slot
  std::vector<std::shared_ptr<std::uint64_t>> mapped_;
  std::shared_ptr<void> memory_;  ///< ForwarderWords, then a word for each slot
  device::ForwarderWords* words_ = nullptr;
  std::vector<std::string> decisions_;
  std::unique_ptr<DoorbellForwarder> forwarder_;  ///< the last to be made, the first to go
};

}  // namespace belfry::host
