#pragma once
/// \file
/// One check: a name for --only and --skip, the rules it may report, and the function that looks.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/host/environment.hpp"
#include "doctor/finding.hpp"
#include "doctor/machine.hpp"
#include "doctor/trials.hpp"

namespace belfry::doctor {

/// What a check sees, and where it reports.
class Visit {
 public:
  Visit(const Machine& m, const host::Environment& e, Trials* t, std::vector<Finding>& out)
      : machine(m), environment(e), trials(t), findings_(out) {}

  const Machine& machine;
  const host::Environment& environment;
  Trials* trials;  ///< null where nothing may be tried (another root)

  const Tree& tree() const { return machine.tree; }

  /// About the machine.
  Finding& report(const Rule& rule, std::string subject, std::string found, const Fills& fills = {});
  /// About a device; an error here leaves the others usable.
  Finding& report(const Rule& rule, const RdmaDevice& device, std::string found, const Fills& fills = {});
  Finding& report(const Rule& rule, const RdmaDevice& device, const RdmaPort& port, std::string found,
                  const Fills& fills = {});

 private:
  std::vector<Finding>& findings_;
};

struct Check {
  std::string_view name;
  std::string_view what;
  std::span<const Rule> rules;
  void (*run)(Visit& visit);
};

/// All checks, in the order in which they run.
std::span<const Check> checks();

// One for each check, in the file of its topic.
extern const Check kDevicesCheck, kNodesCheck, kFirmwareCheck;             // devices.cpp
extern const Check kPortsCheck, kMtuCheck, kGidCheck, kTrafficClassCheck;  // ports.cpp, addressing.cpp
extern const Check kMemlockCheck;                                          // memory_limits.cpp
extern const Check kDevxCheck;                                             // devx.cpp
extern const Check kGpuCheck, kDoorbellCheck;                              // gpu_path.cpp
extern const Check kGpuMemoryCheck, kGdrcopyCheck;                         // gpu_memory.cpp
extern const Check kPcieCheck, kAffinityCheck;                             // topology.cpp
extern const Check kAcsCheck, kIommuCheck, kAtomicsCheck;                  // isolation.cpp
extern const Check kPowerCheck;                                            // power.cpp
extern const Check kVersionsCheck;                                         // versions.cpp
extern const Check kProofCheck;                                            // proof.cpp

}  // namespace belfry::doctor
