#include <fmt/format.h>

#include "check/documents.hpp"
#include "check/gda_checks.hpp"
#include "check/misuse.hpp"
#include "check/mutant.hpp"

namespace belfry::check {

std::string mutant_table() {
  std::string text = "| mutant | left out of | property that kills it | steps |\n|---|---|---|---|\n";
  for (const Check& check : all_mutants()) {
    const Mutant mutant(*check.without);
    const Report report =
        check.random_first ? explore_random(check.scenario, 1, {}) : explore_shortest(check.scenario);
    // Named "mutant.STEP.SCENARIO".
    const std::string step = step_name(*check.without);
    const std::string scenario = check.scenario.name.substr(std::string("mutant.").size() + step.size() + 1);
    text += fmt::format("| {} | {} | {} | {}{} |\n", step, scenario,
                        report.violated ? property_name(report.finding.violation.property) : "SURVIVES",
                        check.random_first ? "at most " : "", report.finding.steps);
  }
  return text;
}

}  // namespace belfry::check
