#pragma once
/// \file
/// The two ends of a ring of frames: one producer, one consumer, each its own process. A record is a
/// FrameHeader and the frame's bytes, padded to kRecordAlign.
///
/// Ordering, frames. The producer stores `tail` with release (or stronger) after the whole record; the
/// consumer loads it with acquire before the record. So a producer that dies inside a record has not
/// published it. The consumer stores `head` with release after its last look at a record; the
/// producer loads it with acquire before it writes there again.
///
/// Ordering, sleep. The producer stores `tail`, then loads `asleep`; the consumer stores `asleep`,
/// then loads `tail`. Each is a store before a load of something else, which only sequential
/// consistency keeps in order. All four are seq_cst, so in their single order either the producer's
/// load comes after the consumer's store, and it signals, or the consumer's load comes after the
/// producer's store, and it stays awake. Weaken one of the four and a wake-up can be lost.
///
/// Neither end believes the other: each keeps its own position privately, only publishes it, and
/// checks what it reads. The memory is the peer's as well, so a frame's bytes may change while they
/// are read; the header that is handed on is a private copy.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "softnic/fabric/frame.hpp"
#include "softnic/fabric/ring_memory.hpp"

namespace belfry::softnic {

/// A cache line; a header with a 16 B acknowledgement behind it fills one.
inline constexpr std::uint64_t kRecordAlign = 64;

constexpr std::uint64_t record_bytes(std::uint32_t frame_bytes) {
  return (sizeof(FrameHeader) + std::uint64_t{frame_bytes} + kRecordAlign - 1) & ~(kRecordAlign - 1);
}
static_assert(2 * record_bytes(kMaxFrameBytes) <= kRingBytesLeast);

enum class PutOutcome : std::uint8_t {
  done,
  full,
  broken,  ///< the consumer's position makes no sense
};

class RingProducer {
 public:
  explicit RingProducer(RingMapping mapping) : mapping_(std::move(mapping)), data_(mapping_.data()) {}

  /// Copies a well-formed frame in and publishes it.
  PutOutcome put(const FrameHeader& header, std::span<const FramePart> parts) {
    const std::uint64_t need = record_bytes(header.bytes);
    if (tail_ + need - head_seen_ > mapping_.bytes()) {
      const PutOutcome room = look_for_room(need);
      if (room != PutOutcome::done) return room;
    }
    std::byte* const at = data_ + (tail_ & (mapping_.bytes() - 1));
    std::memcpy(at, &header, sizeof header);
    gather(at + sizeof header, parts);
    tail_ += need;
    // seq_cst: before the load in claim_signal(); see the head of this file.
    mapping_.control().tail.store(tail_, std::memory_order_seq_cst);
    return PutOutcome::done;
  }

  /// Whether the consumer sleeps and this call is the one that has to signal it. Call after put().
  bool claim_signal() {
    std::atomic<std::uint32_t>& asleep = mapping_.control().asleep;
    // seq_cst: after the store of tail in put(); see the head of this file.
    if (asleep.load(std::memory_order_seq_cst) == 0) [[likely]]
      return false;
    // seq_cst as well: where the consumer has woken by itself meanwhile, its next sleep comes later.
    return asleep.exchange(0, std::memory_order_seq_cst) != 0;
  }

 private:
  PutOutcome look_for_room(std::uint64_t need) {
    const std::uint64_t head = mapping_.control().head.load(std::memory_order_acquire);
    if (head - head_seen_ > tail_ - head_seen_) return PutOutcome::broken;
    head_seen_ = head;
    return tail_ + need - head > mapping_.bytes() ? PutOutcome::full : PutOutcome::done;
  }

  RingMapping mapping_;
  std::byte* data_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_seen_ = 0;  ///< so that the consumer's line is read once a lap, not once a frame
};

class RingConsumer {
 public:
  explicit RingConsumer(RingMapping mapping) : mapping_(std::move(mapping)), data_(mapping_.data()) {}

  /// Hands at most `budget` frames on. The receiver may send, on any ring.
  std::size_t deliver(FrameReceiver& receiver, std::size_t budget) {
    if (head_ == tail_seen_ && !look_for_frames()) return 0;
    std::size_t done = 0;
    while (head_ != tail_seen_ && done < budget) {
      const std::byte* const at = data_ + (head_ & (mapping_.bytes() - 1));
      FrameHeader header;
      std::memcpy(&header, at, sizeof header);
      const std::uint64_t length = record_bytes(header.bytes);
      if (header.bytes > kMaxFrameBytes || length > tail_seen_ - head_) {
        broken_ = true;
        tail_seen_ = head_;
        break;
      }
      receiver.receive(header, at + sizeof header);
      head_ += length;
      ++done;
      // Not every frame: the store takes the line away from a producer that is short of room.
      if (head_ - head_published_ >= mapping_.bytes() / 4) publish();
    }
    publish();
    return done;
  }

  /// Whether there is nothing to deliver, now.
  bool empty() const { return broken_ || mapping_.control().tail.load(std::memory_order_acquire) == head_; }

  /// The producer wrote what no producer writes; nothing more will be delivered.
  bool broken() const { return broken_; }

  /// Asks for a signal. \return false: something has arrived, do not sleep
  bool announce_sleep() {
    RingControl& control = mapping_.control();
    // Both seq_cst, in this order; see the head of this file.
    control.asleep.store(1, std::memory_order_seq_cst);
    return broken_ || control.tail.load(std::memory_order_seq_cst) == head_;
  }

  void announce_awake() { mapping_.control().asleep.store(0, std::memory_order_relaxed); }

 private:
  bool look_for_frames() {
    if (broken_) return false;
    const std::uint64_t tail = mapping_.control().tail.load(std::memory_order_acquire);
    if (tail == head_) return false;
    if (tail - head_ > mapping_.bytes() || tail % kRecordAlign != 0) {
      broken_ = true;
      return false;
    }
    tail_seen_ = tail;
    return true;
  }

  void publish() {
    if (head_published_ == head_) return;
    mapping_.control().head.store(head_, std::memory_order_release);
    head_published_ = head_;
  }

  RingMapping mapping_;
  std::byte* data_;
  std::uint64_t head_ = 0;
  std::uint64_t head_published_ = 0;
  std::uint64_t tail_seen_ = 0;  ///< so that the producer's line is read once a batch
  bool broken_ = false;
};

}  // namespace belfry::softnic
