#pragma once
/// \file
/// Which of the queues to a peer a thread posts to. Setup takes the number of queues from it, a kernel the
/// index, so that the two cannot disagree.

#include <cstdint>

#include "belfry/port/function.hpp"

namespace belfry::device {

enum class QueueScope : std::uint8_t {
  peer,    ///< a given number of queues, which blocks take in turn
  block,   ///< one for each block of the grid
  thread,  ///< one for each thread of the grid
};

class QueueMap {
 public:
  /// `queues` queues to a peer. Block b posts to queue b mod `queues`.
  BELFRY_FN static constexpr QueueMap per_peer(std::uint32_t queues) { return {QueueScope::peer, queues, 1}; }
  /// A queue to a peer for each of `blocks` blocks.
  BELFRY_FN static constexpr QueueMap per_block(std::uint32_t blocks) {
    return {QueueScope::block, blocks, 1};
  }
  /// A queue to a peer for each thread of `blocks` blocks of `threads` threads.
  BELFRY_FN static constexpr QueueMap per_thread(std::uint32_t blocks, std::uint32_t threads) {
    return {QueueScope::thread, blocks, threads};
  }

  BELFRY_FN constexpr QueueScope scope() const { return scope_; }

  /// Queues to each peer: what DeviceEndpointOptions::queues_a_peer wants. 64 bits, so that a grid that is
  /// too large for queues per thread is refused and not truncated.
  BELFRY_FN constexpr std::uint64_t queues() const { return std::uint64_t{count_} * threads_; }

  /// The queue of a thread. Of a grid larger than the map, a block or thread that the map has no queue for
  /// gets kNone, on which every call says bad_argument: two owners of one queue would overwrite each other.
  BELFRY_FN constexpr std::uint32_t index(std::uint32_t block, std::uint32_t thread) const {
    if (scope_ == QueueScope::peer) return block % count_;
    if (block >= count_ || (scope_ == QueueScope::thread && thread >= threads_)) return kNone;
    return scope_ == QueueScope::thread ? block * threads_ + thread : block;
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

 private:
  BELFRY_FN constexpr QueueMap(QueueScope scope, std::uint32_t count, std::uint32_t threads)
      : scope_(scope), count_(count == 0 ? 1 : count), threads_(threads == 0 ? 1 : threads) {}

  QueueScope scope_;
  std::uint32_t count_;    ///< queues of a peer, or blocks; never 0
  std::uint32_t threads_;  ///< of a block that have a queue of their own; never 0
};

}  // namespace belfry::device
