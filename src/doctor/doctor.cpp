#include "doctor/doctor.hpp"

#include <algorithm>
#include <array>

namespace belfry::doctor {
namespace {

constexpr std::array<Rule, 2> kGeneralRules = {{
    {"doctor.left_out", Severity::skipped, "a check was left out on request", "", ""},
    {"doctor.nothing", Severity::skipped, "a check found nothing to look at", "", ""},
}};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_usable(const Diagnosis& diagnosis, bool all) {
  const auto errors = [&](const std::string& device) {
    return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(), [&](const Finding& finding) {
      return finding.severity == Severity::error && finding.device == device;
    });
  };
  if (errors("")) return false;
  // That there is no device is an error of its own, where the check of devices ran.
  if (diagnosis.devices.empty()) return true;
  const auto sound = [&](const std::string& device) { return !errors(device); };
  return all ? std::all_of(diagnosis.devices.begin(), diagnosis.devices.end(), sound)
             : std::any_of(diagnosis.devices.begin(), diagnosis.devices.end(), sound);
}

}  // namespace

std::map<Severity, std::size_t> Diagnosis::counts() const {
  std::map<Severity, std::size_t> counts;
  for (const Finding& finding : findings) ++counts[finding.severity];
  return counts;
}

Diagnosis examine(const Tree& tree, const host::Environment& environment, Trials* trials,
                  const Options& options) {
  const Machine machine = read_machine(tree, options.devices);
  Diagnosis diagnosis;
  diagnosis.root = tree.root().string();
  diagnosis.gpus = machine.gpus.size();
  for (const RdmaDevice& device : machine.devices) {
    diagnosis.devices.push_back(device.name);
    diagnosis.software_nic = diagnosis.software_nic || device.software_nic;
  }
  Visit visit(machine, environment, trials, diagnosis.findings);
  for (const Check& check : checks()) {
    const bool wanted =
        (options.only.empty() || contains(options.only, check.name)) && !contains(options.skip, check.name);
    const std::size_t before = diagnosis.findings.size();
    if (wanted) check.run(visit);
    if (diagnosis.findings.size() == before) {
      visit
          .report(kGeneralRules[wanted ? 1 : 0], "this machine",
                  wanted ? "nothing to look at here" : "left out on request")
          .check = check.name;
    }
  }
  diagnosis.usable = is_usable(diagnosis, !options.devices.empty());
  return diagnosis;
}

std::span<const Rule> general_rules() { return kGeneralRules; }

std::vector<Rule> catalogue() {
  std::vector<Rule> all;
  for (const Check& check : checks()) all.insert(all.end(), check.rules.begin(), check.rules.end());
  all.insert(all.end(), kGeneralRules.begin(), kGeneralRules.end());
  return all;
}

}  // namespace belfry::doctor
