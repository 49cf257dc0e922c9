#pragma once
/// \file
/// A visit: the checks that were asked for, on one machine, and what they found.

#include <map>
#include <string>
#include <vector>

#include "doctor/check.hpp"

namespace belfry::doctor {

struct Options {
  std::vector<std::string> only;  ///< these checks; empty: all
  std::vector<std::string> skip;  ///< not these
  std::vector<std::string>
      devices;  ///< these devices, each of which has to be usable; empty: all, one is enough
};

struct Diagnosis {
  std::string root;
  std::vector<std::string> devices;
  std::size_t gpus = 0;
  bool software_nic = false;  ///< a device of it is the software NIC
  /// No error concerns the machine, and a device without one is left (with named devices: all of them).
  bool usable = false;
  std::vector<Finding> findings;

  std::map<Severity, std::size_t> counts() const;
};

/// \param trials null: only what can be read
/// Throws host::Error (no_device) for a device of the options that is not there.
Diagnosis examine(const Tree& tree, const host::Environment& environment, Trials* trials,
                  const Options& options = {});

/// Rules that belong to no check.
std::span<const Rule> general_rules();

/// Every rule, in the order of the checks.
std::vector<Rule> catalogue();

}  // namespace belfry::doctor
