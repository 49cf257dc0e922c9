#pragma once
/// \file
/// The ring between GPU threads and a CPU worker, as both see it.

#include <cstddef>
#include <cstdint>

#include "belfry/device/status.hpp"
#include "belfry/device/view.hpp"
#include "belfry/port/vector.hpp"

namespace belfry::device::proxy {

/// What the worker tells. In host memory, or in the GPU's where something can write it there. One line, so
/// that a poll brings all of it.
struct alignas(64) WorkerWords {
  std::uint64_t completed;  ///< descriptors whose requests are complete, and all before them
  std::uint64_t fault;      ///< a fault word (device/fault.hpp), whose index is cut to 16 bits; 0: none
  std::uint64_t heartbeat;  ///< moves while the worker lives, also when it has nothing to do
  // Written before `fault`.
  std::uint64_t fault_index;   ///< the descriptor that failed
  std::uint64_t fault_queue;   ///< bits 0-31: QPN; 32-47: peer, or kNoPeer
  std::uint64_t dropped_from;  ///< descriptors from here on have not been posted, and will not be
  std::uint64_t reserved[2];
};
static_assert(sizeof(WorkerWords) == 64);

/// WorkerWords::fault_queue
BELFRY_FN constexpr std::uint64_t fault_queue(std::uint32_t qpn, std::uint16_t peer) {
  return qpn | std::uint64_t{peer} << 32;
}

/// What producers share on the device. Indices are 64-bit and count descriptors.
struct alignas(64) RingState {
  std::uint64_t reserved;  ///< the next slot to be handed out
  std::uint64_t taken;     ///< the worker's progress as last seen: never ahead of it
  std::uint64_t unused[6];
};
static_assert(sizeof(RingState) == 64);

/// One ring. A producer stores a whole descriptor at a time, whose parity says that it belongs to this lap;
/// the worker takes them in order and says how far it is in `taken`.
struct Ring {
  port::Vector16* slots = nullptr;       ///< 2^log_slots descriptors in host memory
  const std::uint64_t* taken = nullptr;  ///< host memory: descriptors that the worker has read
  const WorkerWords* words = nullptr;
  RingState* state = nullptr;
  std::uint32_t log_slots = 0;  ///< at most 15
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Ring) == 40);

/// Everything device code needs of one PE's proxy endpoint.
struct ProxyView {
  std::uint32_t pe = 0;
  std::uint32_t pe_count = 0;
  std::uint32_t ring_count = 0;
  std::uint32_t window_count = 0;
  std::uint32_t self_queues = 1;  ///< 0: this PE is no peer of its own
  std::uint32_t reserved = 0;
  const Ring* rings = nullptr;           ///< [ring]
  const LocalWindow* windows = nullptr;  ///< [window]
  std::uint64_t stall_ns = 0;            ///< a heartbeat that stands this long means a lost worker
};

}  // namespace belfry::device::proxy
