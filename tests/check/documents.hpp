#pragma once
/// \file
/// The documents that the tests write.

#include <string>

namespace belfry::check {

/// docs/litmus.md: every litmus test, both ways.
std::string litmus_document();
/// The table in docs/ordering.md: every step left out, and what finds it in the shortest schedule.
std::string mutant_table();

}  // namespace belfry::check
