#pragma once
/// \file
/// What the GPU engine is told of queues, and what it tells back: plain structs that both sides read. They
/// change only while no engine kernel runs.

#include <cstdint>

namespace belfry::softnic {

/// Registers of a UAR page; halves are for BlueFlame, which a GPU does not use.
inline constexpr unsigned kGpuRegisters = 2;

/// A completion queue as the engine writes it.
struct GpuRing {
  unsigned char* entries = nullptr;       ///< null: there is none
  const std::uint32_t* record = nullptr;  ///< consumer index, big-endian
  std::uint32_t slot = 0;                 ///< where its producer index is kept
  std::uint32_t log_entries = 0;
  std::uint32_t entry_bytes = 64;
  bool collapsed = false;
  bool ignore_overrun = false;
  bool shared = false;  ///< more than one queue completes here
  /// It is not memory of the engine's GPU: entries are ordered for the whole system.
  bool far = false;
};

enum class GpuQueueState : std::uint8_t {
  idle,      ///< not ready to send
  active,    ///< ready to send
  flushing,  ///< in error: whatever is posted is flushed
};

/// A queue pair whose send queue lies in GPU memory, for the engine that executes it.
struct alignas(16) GpuQueuePair {
  std::uint64_t generation = 0;  ///< 0: there is none; another number: another queue, or one that was reset
  const unsigned char* blocks = nullptr;
  std::uint32_t block_mask = 0;
  std::uint32_t number = 0;
  const std::uint64_t* doorbells[kGpuRegisters] =
      {};                                 ///< the registers of its page: it may be rung by any of them
  const std::uint32_t* record = nullptr;  ///< send word of its doorbell record
  std::uint32_t user_index = 0;
  std::uint32_t pd = 0;
  GpuQueueState state = GpuQueueState::idle;
  bool no_record = false;
  bool polls_record = false;  ///< look at the record, not at the register
  bool far = false;           ///< ring or record are not memory of the engine's GPU
  bool unordered_writes = false;
  bool reads = false;      ///< READ and atomics have somewhere to wait
  bool reachable = false;  ///< the other end is in this process and ready
  bool peer_receives = false;
  bool peer_elsewhere = false;  ///< its receives belong to another GPU's engine
  std::uint32_t peer_pd = 0;
  std::uint32_t peer_access = 0;  ///< Access bits of the peer's queue
  std::uint32_t peer_slot = 0;    ///< where its receive index is kept
  std::uint32_t peer_number = 0;
  std::uint32_t peer_user_index = 0;
  std::uint32_t slid = 0;
  std::uint64_t max_message = 0;
  std::uint64_t retry_ns = 0;     ///< so long a peer may be silent; ~0: for ever
  std::uint64_t rnr_ns = 0;       ///< pause after a peer had no receive posted
  std::uint32_t rnr_retries = 0;  ///< ~0: for ever
  // The peer's receive queue, which immediates consume.
  std::uint32_t peer_receive_entries = 0;
  const std::uint32_t* peer_receive_record = nullptr;
  GpuRing completions;
  GpuRing peer_completions;
};

/// How far a queue is. The engine writes it when it ends, and `failed` as soon as it fails.
struct GpuProgress {
  std::uint64_t producer = 0;  ///< blocks that doorbells have announced
  std::uint64_t next = 0;      ///< blocks before it are complete
  /// What the doorbell registers held before the engine looked for the last time.
  std::uint64_t seen[kGpuRegisters] = {};
  std::uint64_t silent_since = 0;  ///< ns of the GPU's clock: its peer has not answered since; 0: it does
  std::uint32_t failed = 0;        ///< syndrome | vendor << 8 of the WQE that failed; 0: none
  std::uint32_t overrun = 0;       ///< not 0: its completion queue was full
};

/// A stretch of host memory that the engine touches.
struct HostRange {
  void* address = nullptr;
  std::uint64_t bytes = 0;
  bool operator==(const HostRange&) const = default;
};

}  // namespace belfry::softnic
