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
};

struct Judgement {
  bool as_expected = false;
  Report report;
  std::string found_by;  ///< "all of it", "2 deviations", "random, seed 7"
  std::string trace;     ///< of an unexpected violation
};

/// Explores all of it if that ends within the limits; else what deviates little, and then at random.
Judgement judge(const Check& check, const Limits& limits, std::uint64_t seed = 1);

/// Every check there is.
std::vector<Check> all_checks();

}  // namespace belfry::check
