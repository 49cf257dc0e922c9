#pragma once
/// \file
/// mini-gda under the checker: its protocols, and each of their steps left out.

#include <vector>

#include "check/checks.hpp"

namespace belfry::check {

/// The seven orderings, which hold as the design says and fail elsewhere.
std::vector<Check> gda_ordering_checks();
std::vector<Check> gda_ordering_mutants();
/// Ways of sharing, of waiting, of signalling and of failing: all hold.
std::vector<Check> gda_checks();
/// Each step left out of a protocol that needs it: all fail.
std::vector<Check> gda_mutants();

}  // namespace belfry::check
