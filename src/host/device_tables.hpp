#pragma once
/// \file
/// The arrays behind a device::EndpointView, in the memory of a placement.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "belfry/device/fault.hpp"
#include "belfry/device/view.hpp"
#include "belfry/host/devx_queue.hpp"
#include "belfry/host/placement.hpp"
#include "belfry/host/windows.hpp"
#include "host/doorbell_routing.hpp"

namespace belfry::host {

/// Host memory from one provider wherever none is named.
Placement resolve(Placement placement);

/// What memory is to the device code that posts: `said`, unless the provider of its tables and that of the
/// memory know that they are two GPUs'. \param gpu the memory's, if it is known
device::MemoryKind kind_for(const MemoryPlace& tables, device::MemoryKind said, std::optional<int> gpu);

/// A fresh queue's state. \param first_index the first block's
device::QueueState initial_state(std::uint64_t first_index);

class DeviceTables {
 public:
  DeviceTables() = default;
  /// \param queues by slot, pe * queues_a_peer + index; null where there is none
  /// Throws Error: locked_memory (the sink), or what a provider throws.
  DeviceTables(const Placement& placement, const Windows& windows,
               std::span<const std::unique_ptr<DevxQueue>> queues, std::uint32_t queues_a_peer,
               std::uint64_t first_index, const DoorbellRouting& doorbells);

  const device::EndpointView& view() const { return view_; }
  /// The host's copy of view().queues.
  std::span<const device::SendQueue> queues() const { return queues_; }
  device::Fault fault(std::size_t slot) const;

 private:
  void place_states(std::span<const std::unique_ptr<DevxQueue>> queues, std::uint64_t first_index);
  void describe_queues(std::span<const std::unique_ptr<DevxQueue>> queues, std::uint32_t queues_a_peer,
                       const DoorbellRouting& doorbells);
  void place_tables(const Windows& windows);

  Placement placement_;
  std::vector<device::SendQueue> queues_;
  std::shared_ptr<void> states_;
  std::shared_ptr<void> tables_;
  std::optional<Memory> sink_;
  device::EndpointView view_;
};

}  // namespace belfry::host
