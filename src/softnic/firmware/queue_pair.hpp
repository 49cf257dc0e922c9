#pragma once
/// \file
/// A queue pair as the device holds it: its context, its rings, and where requester and responder are.

#include <cstdint>
#include <deque>

#include "softnic/firmware/completion_queue.hpp"
#include "softnic/firmware/control.hpp"
#include "softnic/firmware/mover.hpp"
#include "softnic/transport/packet.hpp"

namespace belfry::softnic {

struct Uar;

/// A WQE that has been started and is not complete.
struct StartedWqe {
  std::uint64_t first_block = 0;
  std::uint32_t blocks = 1;
  wire::WqeOpcode opcode = wire::WqeOpcode::nop;
  bool signalled = false;
  bool response_needed = false;  ///< READ or atomic
  std::uint32_t first_psn = 0;
  std::uint32_t psn_count = 0;
  std::uint32_t psns_received = 0;  ///< READ: response packets that have arrived in order
  std::uint64_t bytes = 0;
};

struct RequesterState {
  std::uint32_t next_psn = 0;     ///< of the next new request
  std::uint32_t unacked_psn = 0;  ///< lowest that is not acknowledged
  std::uint32_t sent_psn = 0;     ///< one past the highest that was ever put out
  /// A response missing here was asked for again; asking once is enough until it comes or time is up.
  std::uint32_t asked_again_psn = ~0u;
  std::deque<StartedWqe> started;

  // Where emission stands: a WQE of `started`, and how many of its packets are out.
  std::size_t emit_index = 0;
  std::uint32_t emit_packets = 0;
  // What the message in parts was when it began (direct path).
  wire::WqeOpcode part_opcode = wire::WqeOpcode::nop;
  std::uint64_t part_bytes = 0;

  std::uint32_t reads_outstanding = 0;
  std::uint64_t deadline = 0;    ///< ns; retransmit then; 0: no timer runs
  std::uint64_t not_before = 0;  ///< ns; an RNR NAK asked for this pause; 0: none
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
};

/// A response that the responder owes, oldest first.
struct OwedResponse {
  enum class Kind : std::uint8_t { read, atomic, acknowledge };
  Kind kind = Kind::acknowledge;
  std::uint32_t psn = 0;  ///< first PSN (acknowledge: the one acknowledged)
  std::uint32_t psn_count = 1;
  std::uint32_t psns_sent = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint64_t original = 0;
  std::uint8_t aeth = 0;  ///< syndrome of an acknowledge
};

struct ReceivedAtomic {
  std::uint32_t psn;
  std::uint64_t original;
};

struct ResponderState {
  std::uint32_t expected_psn = 0;
  std::uint32_t message_count = 0;  ///< MSN
  bool nak_sent = false;            ///< a sequence NAK is out for expected_psn

  // The message under way; `open` between its first and last packet.
  bool open = false;
  Verb verb = Verb::write;
  std::uint64_t key_epoch = 0;  ///< when `write_to` or `spans` was resolved
  std::uint32_t write_key = 0;
  std::uint64_t write_address = 0;  ///< of the next byte
  std::uint64_t write_left = 0;
  unsigned char* write_to = nullptr;
  std::uint64_t received = 0;
  std::uint64_t receive_index = 0;  ///< SEND: the receive WQE that it fills
  SpanList spans;                   ///< SEND: its memory, as far as its keys are good
  bool span_fault = false;          ///< SEND: behind `spans` a key is bad

  std::deque<OwedResponse> owed;
  std::deque<ReceivedAtomic> atomics;  ///< last responder_depth results, for duplicates
  bool in_owed_list = false;
};

struct QueuePair {
  explicit QueuePair(const QpAttributes& a) : attributes(a) {}

  QpAttributes attributes;
  std::uint32_t number = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  Uar* uar = nullptr;

  QpState state = QpState::reset;
  QpSnapshot context;       ///< what MODIFY set; state and counters are filled in by QUERY
  unsigned mtu_shift = 10;  ///< log2 of the path MTU
  FrameHeader frame;        ///< addresses of every frame that this QP sends
  bool direct = false;      ///< the peer is in this process and meets us without packets
  bool established = false;

  // Send queue, in blocks, 64-bit and monotonic.
  std::uint64_t producer = 0;   ///< announced by doorbells
  std::uint64_t next = 0;       ///< first block not started
  std::uint64_t completed = 0;  ///< first block not complete
  // Receive queue, in entries.
  std::uint64_t receive_next = 0;

  RequesterState requester;
  ResponderState responder;

  std::uint32_t gpu_slot = 0;        ///< where the GPU engine knows it
  std::uint64_t gpu_generation = 0;  ///< changes with every reset
  MemoryOwner engine = kHostMemory;  ///< the GPU whose engine executes it
  bool on_gpu() const { return is_gpu(attributes.queues_owner); }

  bool gone = false;  ///< its memory went away twice: it is not touched again
  bool drain_reported = false;
  bool queued = false;  ///< in the NIC's list of QPs with work to send
  /// The direct path's peer as found at this epoch of the NIC's tables.
  QueuePair* peer = nullptr;
  std::uint64_t peer_epoch = 0;
  /// Set with the first failure: the syndrome that flushes must not hide.
  wire::Syndrome root_cause = wire::Syndrome::none;

  bool can_send() const { return state == QpState::rts; }
  /// Answers are still taken, and what was started is still repeated.
  bool can_finish() const { return state == QpState::rts || state == QpState::sqd; }
  bool can_receive() const { return state == QpState::rtr || state == QpState::rts || state == QpState::sqd; }
  std::uint32_t mtu() const { return 1u << mtu_shift; }
  const unsigned char* block(std::uint64_t index) const {
    return static_cast<const unsigned char*>(attributes.send_queue) +
           (index & (attributes.send_blocks - 1)) * wire::kBlockBytes;
  }
};

}  // namespace belfry::softnic
