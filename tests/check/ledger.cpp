#include "check/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace belfry::check {

std::size_t Ledger::intend(std::string name, wire::WqeOpcode opcode, std::uint64_t remote,
                           std::uint64_t value) {
  Operation o;
  o.name = std::move(name);
  o.opcode = opcode;
  o.remote = remote;
  o.value = value;
  operations_.push_back(std::move(o));
  return operations_.size() - 1;
}

void Ledger::know_index(Operation& o, std::uint64_t index) {
  world_.require(!o.index_known || o.index == index, Property::in_order,
                 fmt::format("{} was executed as block {}, and posted as block {}", o.name, o.index, index));
  o.index = index;
  o.index_known = true;
}

void Ledger::posted(std::size_t operation, std::uint64_t index) { know_index(operations_[operation], index); }

void Ledger::not_posted(std::size_t operation) {
  Operation& o = operations_[operation];
  const bool failed =
      std::any_of(operations_.begin(), operations_.end(), [](const Operation& each) { return each.refused; });
  world_.require(failed, Property::cause_known,
                 o.name + " is refused by a queue said to have failed, and it has not");
  world_.require(!o.fetched, Property::exactly_once,
                 o.name + " is said not to be posted, and the NIC has it");
  o.not_posted = true;
}

void Ledger::completed(std::size_t operation) {
  Operation& o = operations_[operation];
  world_.require(o.executed, Property::exactly_once,
                 o.name + " is said to be complete, and was not executed");
  world_.require(!o.completed, Property::exactly_once, o.name + " completed twice");
  o.completed = true;
}

void Ledger::told_failed(std::size_t operation) {
  const Operation& o = operations_[operation];
  world_.require(!o.executed, Property::exactly_once, o.name + " is said to have failed, and was executed");
}

void Ledger::refused(std::size_t operation) {
  if (operation != kNop) operations_[operation].refused = true;
}

std::size_t Ledger::fetched(wire::WqeOpcode opcode, std::uint64_t remote, std::uint64_t index) {
  if (opcode == wire::WqeOpcode::nop && nops_) return kNop;
  bool before = false;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    Operation& o = operations_[i];
    if (o.opcode != opcode || o.remote != remote) continue;
    if (o.fetched) {
      before = true;
      continue;
    }
    world_.require(!o.not_posted, Property::exactly_once,
                   o.name + " is said not to be posted, and the NIC fetches it");
    o.fetched = true;
    know_index(o, index);
    return i;
  }
  if (before)
    world_.fail(Property::exactly_once, fmt::format("the NIC executes block {} a second time", index));
  world_.fail(Property::fetch_after_stores,
              fmt::format("block {} is not a WQE that anybody built (opcode {:#x}, remote address {:#x})",
                          index, static_cast<unsigned>(opcode), remote));
  return kNop;
}

void Ledger::executed(std::size_t operation, std::uint64_t value) {
  if (operation == kNop) return;
  Operation& o = operations_[operation];
  const bool checks =
      o.opcode == wire::WqeOpcode::rdma_write || o.opcode == wire::WqeOpcode::atomic_fetch_add;
  world_.require(!checks || value == o.value, Property::payload_before_doorbell,
                 fmt::format("{} carried {:#x} instead of {:#x}", o.name, value, o.value));
  o.executed = true;
}

void Ledger::check_all_executed() {
  for (const Operation& o : operations_)
    world_.require(o.executed || o.refused || o.not_posted, Property::exactly_once,
                   o.name + " was posted and never executed");
}

}  // namespace belfry::check
