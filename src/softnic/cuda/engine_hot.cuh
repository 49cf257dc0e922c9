#pragma once
/// \file
/// The short way through the engine: WRITEs that hot_writes.cuh takes.

#include "softnic/cuda/engine_warp.cuh"

namespace belfry::softnic::cuda {

/// Every lane the value of one.
template <class T>
__device__ T shuffle_all(const T& value, std::uint32_t owner) {
  static_assert(sizeof(T) % 4 == 0);
  std::uint32_t words[sizeof(T) / 4];
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (std::uint32_t& word : words) word = port::shuffle(kFullWarp, word, owner);
  T result;
  memcpy(&result, words, sizeof result);
  return result;
}

template <bool constant>
__device__ void EngineWarp<constant>::serve_hot_singles(const Early& early) {
  if (!early.there | (mine_.next + 1 != mine_.producer)) return;
  // Built while the block is under way.
  CqeWords words = words_of_hot(mine_.hot, mine_.next, mine_.completions);
  asm volatile("" : "+l"(words.word[7]));
  HotWrite w;
  if (!take_hot(mine_.hot, early.block, w)) return;
  if (mine_.stored != Reach::none && !mine_.hot.unordered) {
    release_fence(mine_.stored);
    mine_.stored = Reach::none;
  }
  store_hot(w);
  mine_.stored = wider(mine_.stored, reach_of(mine_.hot));
  if (w.signalled) {
    push_hot(mine_.hot, words, mine_.stored, mine_.body_stored);
    ++mine_.completions;
    mine_.stored = Reach::none;
    mine_.body_stored = true;
  }
  mine_.next = mine_.producer;
}

template <bool constant>
__device__ void EngineWarp<constant>::serve_all() {
  std::uint32_t waiting = port::ballot(kFullWarp, mine_.exists && mine_.waits());
  for (; waiting != 0; waiting &= waiting - 1) {
    const std::uint32_t owner = port::first_lane(waiting);
    if (!serve_hot_batches(owner)) serve(owner);
  }
  unfinished_ = stopping_ || port::ballot(kFullWarp, mine_.waits()) != 0;
}

template <bool constant>
__device__ bool EngineWarp<constant>::serve_hot_batches(std::uint32_t owner) {
  if (port::shuffle(kFullWarp, mine_.hot.memory != nullptr ? 1u : 0u, owner) == 0) return false;
  const HotWrites hot = shuffle_all(mine_.hot, owner);
  const auto next = port::shuffle(kFullWarp, mine_.next, owner);
  auto left = static_cast<std::uint32_t>(port::shuffle(kFullWarp, mine_.producer, owner) - next);
  Reach stored =
      static_cast<Reach>(port::shuffle(kFullWarp, static_cast<std::uint32_t>(mine_.stored), owner));
  std::uint32_t done = 0;
  bool all_hot = true;
  std::uint32_t owed = 0;  // one more than the last signalled one, counted from `next`; 0: none
  BlockWords block = fetch_block(block_of_ring(hot.blocks, hot.block_mask, next + lane_));
  for (std::uint32_t round = 0; round < kRounds && done < left; ++round) {
    // The next ones travel while these are carried out. A block that nothing has announced comes along, and
    // is not looked at: a fetch by some lanes only would be waited for here.
    BlockWords following =
        fetch_block(block_of_ring(hot.blocks, hot.block_mask, next + done + kWarpSize + lane_));
    HotWrite w;
    const bool good = take_hot(hot, block, w) & (lane_ < left - done);
    const std::uint32_t bad = ~port::ballot(kFullWarp, good);
    const std::uint32_t run = bad == 0 ? kWarpSize : port::first_lane(bad);
    store_run(hot, w, run, stored);
    const std::uint32_t signalled = port::ballot(kFullWarp, lane_ < run && w.signalled);
    if (signalled != 0) owed = done + port::last_lane(signalled) + 1;
    done += run;
    if (run < kWarpSize) {
      all_hot = done == left;
      break;
    }
    arrive_here(following);
    block = following;
  }
  port::sync_warp(kFullWarp);
  if (lane_ == owner) {
    if (owed != 0) {
      push_hot(hot, words_of_hot(hot, next + owed - 1, mine_.completions++), stored, mine_.body_stored);
      mine_.body_stored = true;
    }
    mine_.stored = owed != 0 ? Reach::none : stored;
    mine_.next += done;
  }
  return all_hot;
}

template <bool constant>
__device__ void EngineWarp<constant>::store_run(const HotWrites& hot, const HotWrite& w, std::uint32_t run,
                                                Reach& stored) {
  if (run == 0) return;
  if (hot.unordered) {
    if (lane_ < run) store_hot(w);
    stored = wider(stored, reach_of(hot));
  } else {
    for (std::uint32_t i = 0; i < run; ++i) {
      if (lane_ == i) {
        release_fence(stored);
        store_hot(w);
      }
      stored = reach_of(hot);
      port::sync_warp(kFullWarp);
    }
  }
}

}  // namespace belfry::softnic::cuda
