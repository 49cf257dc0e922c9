#include "check/checks.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "check/gda_checks.hpp"
#include "check/mutant.hpp"
#include "check/proxy_checks.hpp"
#include "check/toy_queue.hpp"

namespace belfry::check {
namespace {

std::string in_words(int deviations) {
  if (deviations < 0) return "all of it";
  return fmt::format("{} deviation{}", deviations, deviations == 1 ? "" : "s");
}

}  // namespace

Judgement judge(const Check& check, const Limits& limits, std::uint64_t seed) {
  std::optional<Mutant> mutant;
  if (check.without) mutant.emplace(*check.without);
  Judgement j;
  const auto attempt = [&](int deviations) {
    Limits bounded = limits;
    bounded.deviations = deviations;
    j.report = explore(check.scenario, bounded);
    j.found_by = in_words(deviations);
    return j.report.complete || j.report.violated;
  };
  if (check.random_first) {
    Limits few = limits;
    few.executions = 20'000;
    j.report = explore_random(check.scenario, seed, few);
    j.found_by = fmt::format("random, seed {}", seed);
    j.as_expected = check.holds != j.report.violated;
    if (j.report.violated) return j;
  }
  // What was asked for; if there is not the time for that, as many deviations as there is time for.
  if (!attempt(check.deviations)) {
    std::string seen;
    for (int deviations = 1; deviations <= 4 && attempt(deviations) && !j.report.violated; ++deviations)
      seen = j.found_by + ", then ";
    if (!j.report.violated) {
      j.report = explore_random(check.scenario, seed, limits);
      j.found_by = fmt::format("{}random, seed {}", seen, seed);
    }
  }
  j.as_expected = check.holds != j.report.violated;
  if (!j.as_expected && j.report.violated) j.trace = replay(check.scenario, j.report.finding.schedule);
  return j;
}

std::vector<Check> all_mutants() {
  std::vector<Check> all = gda_mutants();
  for (Check& check : proxy_mutants()) all.push_back(std::move(check));
  return all;
}

std::vector<Check> all_checks() {
  std::vector<Check> all = toy_checks();
  for (auto* more : {gda_ordering_checks, gda_checks, proxy_checks, all_mutants}) {
    auto checks = more();
    all.insert(all.end(), std::make_move_iterator(checks.begin()), std::make_move_iterator(checks.end()));
  }
  return all;
}

}  // namespace belfry::check
