#pragma once
/// \file
/// Where the parts of a device endpoint lie, as data.

#include <memory>

#include "belfry/device/view.hpp"
#include "belfry/host/doorbell_path.hpp"
#include "belfry/host/queue_memory.hpp"

namespace belfry::host {

/// A provider of memory, and what its memory is to the device code that posts. The two belong together: host
/// memory is `own` to a CPU lane and `host` to a GPU.
struct MemoryPlace {
  device::MemoryKind kind = device::MemoryKind::own;
  std::shared_ptr<QueueMemory> memory = nullptr;  ///< null: host memory
};

struct Placement {
  MemoryPlace send_queue;
  MemoryPlace completion_queue;
  MemoryPlace record;  ///< doorbell records of the send queues
  MemoryPlace state;   ///< device::QueueState
  /// The view's arrays, and the sink. Whose GPU's memory this is has the device code: memory of another GPU
  /// that is said to be `own` is a peer's.
  MemoryPlace tables;
  /// Words that a CPU thread forwards (DoorbellPath::cpu_assisted). Host memory that the device code reaches:
  /// for a GPU, pinned and mapped.
  MemoryPlace doorbells = {};
  /// How device code reaches the NIC's registers; null: at the addresses that this process has, as CPU lanes
  /// do.
  std::shared_ptr<RegisterMapper> registers = nullptr;

  /// All memory that may be a GPU's, in one place.
  static Placement all(const MemoryPlace& place) { return {place, place, place, place, place, {}, nullptr}; }
};

}  // namespace belfry::host
