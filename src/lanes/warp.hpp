#pragma once
/// \file
/// One warp: up to 32 lanes that take turns on one CPU thread.

#include <array>
#include <cstdint>
#include <string>

#include "belfry/port/lane.hpp"
#include "lanes/block_barrier.hpp"
#include "lanes/fiber.hpp"
#include "lanes/launch_state.hpp"

namespace belfry::lanes {

/// Where a lane waits.
enum class Call : std::uint8_t { poll, sync_warp, ballot, shuffle, sync_block };

const char* to_string(Call call);

/// "lane 3", "lanes 0-3, 7"
std::string name_lanes(std::uint32_t mask);

class Warp;

class Lane final : public port::CpuLane {
 public:
  Lane() = default;
  virtual ~Lane() = default;
  void yield() override;
  void sync_warp(std::uint32_t mask) override;
  std::uint32_t ballot(std::uint32_t mask, bool vote) override;
  std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source) override;
  bool sync_block(bool vote) override;

 private:
  friend class Warp;
  std::uint32_t bit() const { return 1u << lane; }

  Warp* warp_ = nullptr;
  Fiber fiber_;
  // Of the collective that the lane waits in, or was last in.
  std::uint64_t value_ = 0;
  std::uint32_t source_ = 0;
  std::uint64_t result_ = 0;
};

class Warp {
 public:
  /// \param index in its block
  Warp(LaunchState& launch, BlockBarrier& barrier, std::uint32_t index);
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  /// Runs its lanes of one block until the last has ended, on the calling CPU thread, which is the same each
  /// time. Failures go to the launch.
  void run(std::uint32_t block);

 private:
  friend class Lane;

  /// Lanes that wait for each other in one collective call.
  struct Meeting {
    std::uint32_t mask = 0;
    std::uint32_t arrived = 0;
    std::uint32_t votes = 0;
    Call call{};
  };

  void prepare(std::uint32_t block);
  // Neither returns, and TSan would wait for that.
  BELFRY_LANES_NO_TSAN static void enter(void* lane);
  [[noreturn]] BELFRY_LANES_NO_TSAN void exit(Lane& lane);
  /// \return what goes on after a lane that has ended
  Fiber& retire(const Lane& lane);

  // Taking turns (warp.cpp).
  void yield(Lane& lane);
  /// The lane leaves the ready ones and comes back when somebody makes it ready.
  void wait(Lane& lane, Call call);
  std::uint32_t next_ready(std::uint32_t lane) const;
  void end_round();
  void wait_until_ready();
  void rest();
  void switch_lanes(Lane& from, Lane& to);
  /// Throws Stopped if the launch is being given up, unless the lane is unwinding already.
  void heed_stop(Lane& lane, Call call);
  void release_all();

  // Meeting (collectives.cpp).
  /// \return the lane's result
  std::uint64_t meet(Lane& lane, Call call, std::uint32_t mask, std::uint64_t value, std::uint32_t source);
  /// \return where the lane meets the others, or null when the launch is being given up, at the latest now: a
  /// mistake fails it at once, for a kernel could catch an exception.
  Meeting* join(const Lane& lane, Call call, std::uint32_t mask, std::uint32_t source);
  Meeting* find_meeting(const Lane& lane, Call call, std::uint32_t mask);
  void refuse_mask(const Lane& lane, Call call, std::uint32_t mask, std::uint32_t source);
  void complete(Meeting& meeting);
  bool sync_block(Lane& lane, bool vote);
  void check_exit(const Lane& lane);
  /// All lanes wait, and not all of them for the rest of the block.
  void fail_stuck();
  std::string describe_meeting(const Meeting& meeting) const;
  /// Fails the launch with a DivergenceError.
  void fail(std::uint32_t lanes, const std::string& message);

  LaunchState& launch_;
  BlockBarrier& barrier_;
  const std::uint32_t index_;
  std::uint32_t block_ = 0;
  std::uint32_t all_ = 0;            ///< lanes that this warp has
  std::uint32_t live_ = 0;           ///< of them, those that have not exited
  std::uint32_t ready_ = 0;          ///< of them, those that can run
  std::uint32_t in_sync_block_ = 0;  ///< of them, those that wait for the block
  bool block_vote_ = false;          ///< whether any of those voted true
  std::uint32_t open_meetings_ = 0;  ///< which of meetings_ are in use
  std::uint32_t idle_rounds_ = 0;
  const std::uint32_t rounds_a_rest_;  ///< idle rounds between two calls of sched_yield
  bool progress_ = false;              ///< this round, some lane did something else than poll
  bool released_ = false;              ///< all have been made ready, to be given up
  ExceptionState* exceptions_ = nullptr;
  port::CpuLane** current_ = nullptr;
  Fiber thread_;
  std::array<Meeting, port::kWarpSize> meetings_;
  std::array<Lane, port::kWarpSize> lanes_;
};

}  // namespace belfry::lanes
