#pragma once
/// \file
/// What the operations of a scenario should do, and what became of each: the memory of the properties.

#include <cstdint>
#include <string>
#include <vector>

#include "belfry/wire/wqe.hpp"
#include "check/world.hpp"

namespace belfry::check {

class Ledger {
 public:
  explicit Ledger(World& world) : world_(world) {}

  /// An operation that is going to be posted. No two of a scenario have the same opcode, address and value.
  /// \param value what a WRITE brings, or what an atomic adds; 0 for READ and NOP
  /// \return its number
  std::size_t intend(std::string name, wire::WqeOpcode opcode, std::uint64_t remote, std::uint64_t value);
  /// Its poster learnt the index.
  void posted(std::size_t operation, std::uint64_t index);
  /// Its poster was told that the queue had failed, and that nothing was posted.
  void not_posted(std::size_t operation);
  /// Its poster was told that it is complete.
  void completed(std::size_t operation);

  /// Its poster was told that it failed.
  void told_failed(std::size_t operation);

  /// The NIC has decoded a WQE. \return the operation's number
  std::size_t fetched(wire::WqeOpcode opcode, std::uint64_t remote, std::uint64_t index);
  /// The NIC is done with it. \param value what it moved
  void executed(std::size_t operation, std::uint64_t value);
  /// The NIC has failed or flushed it.
  void refused(std::size_t operation);
  /// A WQE that a flush needs, and nobody intended.
  void allow_nops() { nops_ = true; }
  static constexpr std::size_t kNop = static_cast<std::size_t>(-1);

  /// At the end: every operation was executed once, or failed by the NIC.
  void check_all_executed();

 private:
  struct Operation {
    std::string name;
    wire::WqeOpcode opcode = wire::WqeOpcode::nop;
    std::uint64_t remote = 0;
    std::uint64_t value = 0;
    std::uint64_t index = 0;
    bool index_known = false;
    bool fetched = false;
    bool executed = false;
    bool refused = false;
    bool completed = false;
    bool not_posted = false;
  };
  void know_index(Operation& operation, std::uint64_t index);

  World& world_;
  std::vector<Operation> operations_;
  bool nops_ = false;
};

}  // namespace belfry::check
