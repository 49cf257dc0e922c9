#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "doctor/world.hpp"

namespace belfry::doctor {

/// A machine with one thing changed, and what has to be found on it.
struct Case {
  std::string name;  ///< the fault that it guards against: this one is not found, or taken for another
  std::function<void(World&)> change;
  std::vector<std::string> expected = {};  ///< ids that have to be there
  std::vector<std::string> absent = {};    ///< ids that must not
  bool usable = true;
  std::vector<std::string> texts = {};  ///< each has to occur in a finding's text or remedy
};

/// How GoogleTest names a case that fails.
inline void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::vector<Case> device_cases();
std::vector<Case> port_cases();
std::vector<Case> gpu_cases();
std::vector<Case> platform_cases();

}  // namespace belfry::doctor
