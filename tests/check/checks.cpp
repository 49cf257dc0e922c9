#include "check/checks.hpp"

#include <fmt/format.h>

#include "check/mutant.hpp"
#include "check/toy_queue.hpp"

namespace belfry::check {
namespace {

bool conforms(const Check& check, const Report& report) { return check.holds != report.violated; }

}  // namespace

Judgement judge(const Check& check, const Limits& limits, std::uint64_t seed) {
  std::optional<Mutant> mutant;
  if (check.without) mutant.emplace(*check.without);
  Judgement j;
  j.report = explore(check.scenario, limits);
  j.found_by = "all of it";
  const bool decided = j.report.complete || j.report.violated;
  for (int deviations = 1; !decided && !j.report.violated && deviations <= 4; ++deviations) {
    Limits bounded = limits;
    bounded.deviations = deviations;
    const Report report = explore(check.scenario, bounded);
    if (!report.complete && !report.violated) break;
    j.report = report;
    j.found_by = fmt::format("{} deviation{}", deviations, deviations == 1 ? "" : "s");
  }
  if (!decided && !j.report.violated) {
    const Report report = explore_random(check.scenario, seed, limits);
    if (report.violated || j.found_by == "all of it") {
      j.report = report;
      j.found_by = fmt::format("random, seed {}", seed);
    }
  }
  j.as_expected = conforms(check, j.report);
  if (!j.as_expected && j.report.violated) j.trace = replay(check.scenario, j.report.finding.choices);
  return j;
}

std::vector<Check> all_checks() { return toy_checks(); }

}  // namespace belfry::check
