#pragma once
/// \file
/// A diagnosis as text for people and as JSON for programs.

#include <string>

#include "doctor/doctor.hpp"

namespace belfry::doctor {

/// A line a finding, by check; for what is not in order, why it matters and what mends it.
/// \param problems_only leaves out what is ok, and checks that had nothing to look at
std::string to_text(const Diagnosis& diagnosis, bool problems_only = false);

/// One JSON object, schema 1 (docs/doctor.md).
std::string to_json(const Diagnosis& diagnosis);

}  // namespace belfry::doctor
