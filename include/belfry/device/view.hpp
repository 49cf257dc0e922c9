#pragma once
/// \file
/// What setup hands to device code: plain structs with addresses, valid on the device for as long as the host
/// object they came from lives (host/device_endpoint.hpp makes them).

#include <cstddef>
#include <cstdint>

#include "belfry/device/window.hpp"
#include "belfry/wire/cqe.hpp"
#include "belfry/wire/doorbell.hpp"

namespace belfry::device {

/// Where memory lies, seen from the device code that posts.
enum class MemoryKind : std::uint8_t {
  own,   ///< the memory of the processor that runs the device code: its GPU's, or a CPU lane's
  host,  ///< host memory, used by a GPU
  peer,  ///< another GPU's memory
};

enum class DoorbellMode : std::uint8_t {
  record,     ///< the NIC reads the doorbell record
  no_record,  ///< the NIC trusts QPN and index in the doorbell
};

enum class CompletionLayout : std::uint8_t {
  ring,       ///< entries in order, owner bit flipping each lap
  collapsed,  ///< every CQE goes to entry 0
};

/// The part of a send queue that device code changes. All indices are 64-bit and count 64 B blocks, except
/// cq_consumer, which counts completion entries. Setup writes first_index into each but lock, cq_consumer and
/// fault, which start at 0.
struct alignas(128) QueueState {
  // What producers share.
  std::uint64_t reserved;       ///< the next block to be handed out
  std::uint64_t published;      ///< blocks before it are written, and announced as far as asked for
  std::uint64_t goal;           ///< where consumer stands once all that is published is complete
  std::uint64_t signaled_goal;  ///< the same for what completes visibly; less than goal if a doorbell is owed
  std::uint32_t lock;           ///< 1 while a thread posts, under Publication::lock
  std::uint32_t reserved0[7];
  // What pollers share.
  std::uint64_t consumer;     ///< every WQE whose first block lies before it is complete
  std::uint64_t cq_consumer;  ///< entries taken from a completion ring
  std::uint64_t fault;        ///< a fault word (device/fault.hpp); 0: none
  /// What pollers have seen last of the thread that forwards the doorbells (gda/forwarder.hpp); 0: nothing.
  std::uint64_t forwarder_seen;
  std::uint64_t reserved1[4];
};
static_assert(sizeof(QueueState) == 128 && offsetof(QueueState, consumer) == 64);

/// What a CPU thread tells that forwards doorbells to the NIC. In host memory that device code reaches. It
/// has one for all its queues.
struct alignas(64) ForwarderWords {
  std::uint64_t heartbeat;  ///< moves while the thread lives; kDeadBeat (device/pulse.hpp) once it has ended
  std::uint64_t stall_ns;   ///< a heartbeat that stands this long means a lost thread; 0: never
  std::uint64_t reserved[6];
};
static_assert(sizeof(ForwarderWords) == 64);

/// One send queue of an RC QP that device code posts to.
struct SendQueue {
  std::byte* blocks = nullptr;  ///< 2^log_blocks blocks of 64 B
  Be32* record = nullptr;       ///< send word of the doorbell record; unused in no_record mode
  /// Where device code rings: the NIC's register, or 8 B of host memory that `forwarder` passes on to it.
  std::uint64_t* doorbell = nullptr;
  const std::byte* completions = nullptr;  ///< 2^log_completions entries of 64 B; one if collapsed
  QueueState* state = nullptr;
  std::uint32_t qpn = 0;
  std::uint8_t log_blocks = 0;  ///< at most 15
  std::uint8_t log_completions = 0;
  DoorbellMode doorbell_mode = DoorbellMode::record;
  CompletionLayout completion_layout = CompletionLayout::collapsed;
  MemoryKind blocks_kind = MemoryKind::own;
  MemoryKind record_kind = MemoryKind::own;
  MemoryKind completions_kind = MemoryKind::own;
  bool owns_register = true;  ///< false: other queues ring it too (their doorbells then need the record)
  std::uint32_t peer = 0;     ///< PE at the other end
  /// Of the CPU thread that forwards the doorbells; null: device code rings the NIC itself.
  const ForwarderWords* forwarder = nullptr;
};
static_assert(sizeof(SendQueue) == 64);

/// Everything device code needs of one PE's endpoint.
struct EndpointView {
  std::uint32_t pe = 0;
  std::uint32_t pe_count = 0;
  std::uint32_t queues_a_peer = 0;
  std::uint32_t window_count = 0;
  const SendQueue* queues = nullptr;      ///< [pe * queues_a_peer + index]; state is null where there is none
  const LocalWindow* windows = nullptr;   ///< [window]
  const RemoteWindow* remotes = nullptr;  ///< [window * pe_count + pe]
  std::uint64_t max_message = 0;          ///< bytes of one WQE's payload at most
  std::uint32_t max_inline = 0;           ///< bytes of inline payload at most
  /// 8 B for each queue, in the order of `queues`: results nobody wants. Its entry may lie behind those that
  /// window_count counts.
  Place sink;
};

}  // namespace belfry::device
