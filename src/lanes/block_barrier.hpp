#pragma once
/// \file
/// Where the warps of a block meet. A warp arrives when all of its lanes that have not exited wait in
/// sync_block, and leaves when all have exited. Unlike std::barrier's, its waiters can also look at other
/// things meanwhile: whether the launch has been given up.

#include <array>
#include <atomic>
#include <cstdint>

namespace belfry::lanes {

class BlockBarrier {
 public:
  /// For a new block, while no warp uses it.
  void reset(std::uint32_t warps) {
    present_.store(warps, std::memory_order_relaxed);
    pending_.store(warps, std::memory_order_relaxed);
    for (auto& vote : votes_) vote.store(false, std::memory_order_relaxed);
  }

  /// \param vote whether any lane of the warp voted true
  /// \return the phase, to be asked for with passed()
  std::uint32_t arrive(bool vote) {
    // It cannot change before this warp has arrived.
    const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
    if (vote) votes_[phase & 1].store(true, std::memory_order_relaxed);
    count_down();
    return phase;
  }

  /// Whether any warp voted true; to be read after the phase has passed and before this warp arrives again.
  bool any(std::uint32_t phase) const { return votes_[phase & 1].load(std::memory_order_relaxed); }

  bool passed(std::uint32_t phase) const { return phase_.load(std::memory_order_acquire) != phase; }

  void leave() {
    present_.fetch_sub(1, std::memory_order_relaxed);
    count_down();
  }

 private:
  void count_down() {
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    pending_.store(present_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    // The votes of the phase before this one: all have read them, or they would not have arrived.
    votes_[(phase_.load(std::memory_order_relaxed) + 1) & 1].store(false, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_release);
  }

  alignas(64) std::atomic<std::uint32_t> pending_{0};  ///< warps that this phase waits for
  std::atomic<std::uint32_t> present_{0};              ///< warps that have not left
  std::atomic<std::uint32_t> phase_{0};
  std::array<std::atomic<bool>, 2> votes_{};  ///< by the low bit of the phase
};

}  // namespace belfry::lanes
