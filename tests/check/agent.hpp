#pragma once
/// \file
/// An agent of a World: its coroutine, its place among the threads of a block, and what it waits for.

#include <array>
#include <optional>

#include "check/world.hpp"

namespace belfry::check {

/// An access that reads, until the scheduler picks its agent.
struct World::Pending {
  What what = What::load;
  const void* at = nullptr;
  Where where;
  Manner how;
  bool waits = false;
  Modify modify = Modify::add;
  std::uint64_t operand = 0, expected = 0;
  As as;
  const void* site = nullptr;
  std::vector<const void*> callers;  ///< where traces are kept
  std::uint64_t result = 0;
  std::uint64_t result_high = 0;  ///< of 16 B the last 8
};

/// A read of a waiting loop: what it took.
struct World::Reading {
  const void* site = nullptr;
  const void* at = nullptr;
  Where where;
  int port = 0;
  Stamp stamp = 0;
  std::uint64_t read = 0;  ///< hash of what it took
  std::uint64_t value = 0;
};

class World::Agent final : public port::CpuLane {
 public:
  Agent(World& world, std::string agent_name, Place at, bool is_daemon, std::function<void()> body);

  // port::CpuLane: the threads of a block. A barrier is over once all have come; a vote or a shuffle orders
  // no memory.
  void yield() override {}
  void sync_warp(std::uint32_t mask) override;
  std::uint32_t ballot(std::uint32_t mask, bool vote) override;
  std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source) override;
  bool sync_block(bool vote) override;

  World& world;
  std::string name;
  Place place;
  bool daemon;
  int index = 0;
  int observer = 0;
  std::uint64_t chain = 0;    ///< of all that it has read: its local state is a function of it
  std::uint64_t emitted = 0;  ///< of all that it has done
  Pending* pending = nullptr;
  bool free_turn = false;
  /// Reads since it last stored: a loop that has read the same twice waits for one of them to change.
  std::vector<Reading> readings;
  std::uint64_t before_readings = 0;  ///< chain, when it last stored
  std::optional<Coroutine> coroutine;

  struct Meeting {
    bool waits = false;
    std::uint32_t mask = 0;
    bool whole_block = false;
    bool orders = false;
    std::uint64_t value = 0;
    std::array<std::uint64_t, port::kWarpSize> heard{};  ///< [lane] what each of them brought
  } meeting;

 private:
  void meet(std::uint32_t mask, bool whole_block, bool orders, std::uint64_t value);
  std::vector<Agent*> company(std::uint32_t mask, bool whole_block) const;
};

}  // namespace belfry::check
