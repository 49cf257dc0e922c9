#pragma once
/// \file
/// What the checker checks: scenarios, each of which must hold, or must fail where a step is left out.

#include <optional>
#include <string>
#include <vector>

#include "belfry/port/step.hpp"
#include "check/explore.hpp"

namespace belfry::check {

struct Check {
  Scenario scenario;
  /// Whether no execution may violate a property; false: at least one must.
  bool holds = true;
  /// The step that is left out.
  std::optional<port::Step> without;
  /// Too large for the quick set.
  bool is_long = false;
  /// Too large for all of it at all: executions of at most so many deviations. Below 0: all.
  int deviations = -1;
  /// A fault that is rare among few deviations and frequent at random: random executions first.
  bool random_first = false;
};

struct Judgement {
  bool as_expected = false;
  Report report;
  std::string found_by;  ///< "all of it", "2 deviations", "random, seed 7"
  std::string trace;     ///< of an unexpected violation
};

/// Explores what the check asks for if that ends within the limits; else what deviates less, and then at
/// random.
Judgement judge(const Check& check, const Limits& limits, std::uint64_t seed = 1);

/// The scenario with the step left out: said to fail.
Check mutant_of(port::Step step, const Scenario& scenario);

struct MutantRow {
  port::Step step;
  Scenario scenario;
  bool random_first = false;  ///< Check::random_first
};
Check mutant_of(const MutantRow& row);

/// Every step of the checked protocols left out: all fail.
std::vector<Check> all_mutants();
/// Every check there is.
std::vector<Check> all_checks();

}  // namespace belfry::check
