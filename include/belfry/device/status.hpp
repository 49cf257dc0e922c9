#pragma once
/// \file
/// What a call on the data path answers.

#include <cstdint>

#include "belfry/port/function.hpp"
#include "belfry/wire/cqe.hpp"

namespace belfry::device {

enum class Status : std::uint8_t {
  done,
  timed_out,         ///< the deadline passed; the operation may complete later
  queue_full,        ///< no room came free before the deadline; nothing was posted
  completion_error,  ///< the queue failed: see Fault
  bad_argument,      ///< a window, offset, length or peer that does not exist; nothing was posted
  partly_posted,  ///< no room came free for the rest of a call that takes several WQEs. What was posted will
                  ///< be carried out once a later doorbell or flush announces it; the rest will not
};

/// \return a short text, for hosts that print
BELFRY_FN constexpr const char* status_name(Status status) {
  switch (status) {
    case Status::done:
      return "done";
    case Status::timed_out:
      return "timed out";
    case Status::queue_full:
      return "queue full";
    case Status::completion_error:
      return "completion error";
    case Status::bad_argument:
      return "bad argument";
    case Status::partly_posted:
      return "partly posted";
  }
  return "unknown status";
}

/// No peer, or none that is known.
inline constexpr std::uint16_t kNoPeer = 0xffff;

/// Why a queue failed. The root cause is that of the first WQE which failed; WQEs after it are flushed.
struct Fault {
  enum class Kind : std::uint8_t {
    none,
    root,     ///< index, syndrome and vendor are those of the WQE that failed first
    unknown,  ///< only flushes were seen: the cause was overwritten in a collapsed CQ. index: the first in
              ///< doubt
    worker_lost,  ///< not the NIC's: the CPU worker of a proxy's ring died, or has not moved for too long
    abandoned,    ///< not the NIC's: a thread gave up its turn to publish at `index`, so nothing after it can
                  ///< be posted
  };
  std::uint64_t index = 0;  ///< first block of the WQE, 64-bit; of a proxy's ring, the descriptor
  std::uint32_t qpn = 0;
  Kind kind = Kind::none;
  wire::Syndrome syndrome = wire::Syndrome::none;
  std::uint8_t vendor = 0;
  std::uint16_t peer = kNoPeer;  ///< on a proxy's ring, which serves several: whose queue failed, if known
};

/// The end of an operation or of a wait.
struct Outcome {
  Status status = Status::done;
  /// Of the operation that was waited for: flushed (0x05) where an earlier one is the root. none: what became
  /// of it is not known. A proxy's ring fails as a whole, and the queues to its other peers may have carried
  /// it out.
  wire::Syndrome syndrome = wire::Syndrome::none;
  Fault fault;

  BELFRY_FN constexpr bool ok() const { return status == Status::done; }
};

/// The first failure of several.
BELFRY_FN inline void keep_first(Outcome& first, const Outcome& next) {
  if (first.ok() && !next.ok()) first = next;
}

/// Index of an operation that another thread has (the Block forms).
inline constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};

/// An operation that was posted, or why it was not. Whoever has it may wait for it.
struct Operation {
  Status status = Status::done;
  bool reads = false;            ///< its completion stands for data that the NIC wrote here
  std::uint16_t peer = kNoPeer;  ///< on a proxy's ring: to whom
  std::uint32_t span = 0;   ///< from the first block of its first WQE to that of its last one, in blocks; on
                            ///< a shared queue others' WQEs can lie between
  std::uint64_t index = 0;  ///< first block of its last WQE (of those posted, if partly_posted), 64-bit

  BELFRY_FN constexpr bool ok() const { return status == Status::done; }
};

/// One operation of two that were posted one after the other.
BELFRY_FN constexpr Operation joined(const Operation& first, Operation last) {
  last.span = static_cast<std::uint32_t>(last.index - first.index) + first.span;
  last.reads = last.reads || first.reads;
  return last;
}

/// What a call answers that has posted `before` and now failed to post what follows it.
BELFRY_FN constexpr Operation in_part(Operation before, const Operation& next) {
  before.status = next.status == Status::queue_full ? Status::partly_posted : next.status;
  return before;
}

}  // namespace belfry::device
