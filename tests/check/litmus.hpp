#pragma once
/// \file
/// Litmus tests: short straight programs, and all their outcomes, once by the checker's memory and once by
/// the axioms of the PTX ISA.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "check/place.hpp"

namespace belfry::check {

struct Instruction {
  enum class Kind { load, store, add, fence, fence_sequential } kind = Kind::load;
  unsigned variable = 0;
  unsigned value = 0;  ///< stored or added
  Scope scope = Scope::system;
  bool acquire = false;
  bool release = false;
  bool weak = false;

  bool reads() const { return kind == Kind::load || kind == Kind::add; }
  bool writes() const { return kind == Kind::store || kind == Kind::add; }
  bool is_fence() const { return kind == Kind::fence || kind == Kind::fence_sequential; }
};

struct LitmusThread {
  Place place;
  std::vector<Instruction> instructions;
};

struct Program {
  std::vector<LitmusThread> threads;
  unsigned variables = 2;
};

/// What the reading instructions returned, thread by thread, each in program order. Variables start at 0.
using Results = std::vector<std::uint64_t>;
using Outcomes = std::set<Results>;

/// Every outcome of the checker's memory. \throws Misuse if that was too much to explore
Outcomes checker_outcomes(const Program& program);

/// Every outcome that the PTX memory model allows: each candidate execution is built and held against the
/// axioms (PTX ISA, "Memory Consistency Model", Axioms). Nothing is shared with the checker's memory but
/// Place.
Outcomes ptx_outcomes(const Program& program);

}  // namespace belfry::check
