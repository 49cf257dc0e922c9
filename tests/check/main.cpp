// belfry-check: runs the checker by hand. `./dev check` builds it and runs it.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "check/checks.hpp"
#include "check/documents.hpp"
#include "check/misuse.hpp"
#include "check/mutant.hpp"

namespace belfry::check {
namespace {

struct Options {
  std::string only = ".*";
  bool long_run = false;
  bool list = false;
  bool json = false;
  std::vector<std::string> replay;
  std::uint64_t seed = 1;
  double seconds = 60;
};

std::string expectation(const Check& check) { return check.holds ? "holds" : "fails"; }

void print(const Check& check, const Judgement& j, const Options& options) {
  const Report& r = j.report;
  const std::string verdict = r.violated ? property_name(r.finding.violation.property) : "holds";
  if (options.json) {
    nlohmann::json line = {{"scenario", check.scenario.name},
                           {"as_expected", j.as_expected},
                           {"expected", expectation(check)},
                           {"violated", r.violated ? nlohmann::json(verdict) : nlohmann::json()},
                           {"explored", j.found_by},
                           {"complete", r.complete},
                           {"executions", r.executions},
                           {"states", r.states},
                           {"seconds", r.seconds}};
    if (r.violated) line["schedule"] = schedule_text(r.finding.schedule);
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("{:9} {:70} {:26} {:>9} executions {:>7.2f} s  {}\n", j.as_expected ? "as said" : "NOT SO",
             check.scenario.name, verdict, r.executions, r.seconds, j.found_by);
  if (j.as_expected) return;
  if (!r.violated) fmt::print("          it should have failed: no execution that was tried does\n");
  if (r.violated)
    fmt::print("{}\nAgain: ./dev check --replay {} {}\n", j.trace, check.scenario.name,
               schedule_text(r.finding.schedule));
}

int replay_one(const std::vector<Check>& checks, const Options& options) {
  for (const Check& check : checks) {
    if (check.scenario.name != options.replay[0]) continue;
    std::optional<Mutant> mutant;
    if (check.without) mutant.emplace(*check.without);
    Schedule schedule;
    if (options.replay.size() > 1) {
      schedule = parse_schedule(options.replay[1]);
    } else {
      const Report report =
          check.random_first ? explore_random(check.scenario, options.seed, {5'000'000, options.seconds, -1})
                             : explore_shortest(check.scenario, {5'000'000, options.seconds, -1});
      if (!report.violated) throw Misuse("no schedule of " + check.scenario.name + " was found that fails");
      schedule = report.finding.schedule;
      fmt::print("{} schedule that fails: {}\n", check.random_first ? "A" : "The shortest",
                 schedule_text(schedule));
    }
    fmt::print("{}", replay(check.scenario, schedule));
    return 0;
  }
  throw Misuse("no scenario '" + options.replay[0] + "': see ./dev check --list");
}

int run_checks(const std::vector<Check>& checks, const Options& options) {
  const std::regex only(options.only);
  std::size_t run = 0, wrong = 0;
  for (const Check& check : checks) {
    if ((check.is_long && !options.long_run) || !std::regex_search(check.scenario.name, only)) continue;
    ++run;
    if (options.list) {
      fmt::print("{:70} {}{}\n", check.scenario.name, expectation(check), check.is_long ? " (long)" : "");
      continue;
    }
    const Judgement j = judge(check, {50'000'000, options.seconds, -1}, options.seed);
    wrong += !j.as_expected;
    print(check, j, options);
    std::fflush(stdout);
  }
  if (run == 0) throw Misuse("no scenario matches '" + options.only + "': see ./dev check --list");
  if (!options.list && !options.json) fmt::print("{} scenarios, {} not as said\n", run, wrong);
  return wrong == 0 ? 0 : 1;
}

int main_of(int argc, char** argv) {
  CLI::App app(
      "Runs belfry's queue protocols over a memory weaker than any GPU's, in every order there is "
      "(docs/checker.md).\n"
      "Each scenario is said to hold, or to fail: a mutant, or an ordering without its assumption.");
  Options options;
  app.add_option("--only", options.only, "Scenarios whose names match this regular expression");
  app.add_flag("--long", options.long_run, "The large scenarios as well");
  app.add_flag("--list", options.list, "Name the scenarios, and what is said of each");
  app.add_flag("--json", options.json, "One JSON object a scenario");
  app.add_option(
         "--replay", options.replay,
         "SCENARIO [SCHEDULE]: print one execution step by step; without a schedule the shortest that fails")
      ->expected(1, 2);
  app.add_option("--seed", options.seed, "Of the random search, where a scenario is too large for all of it");
  app.add_option("--seconds", options.seconds, "Seconds on a core for each search of one scenario")
      ->check(CLI::PositiveNumber);
  auto* litmus = app.add_subcommand("litmus", "Print docs/litmus.md as the memory has it today");
  auto* mutants = app.add_subcommand(
      "mutants", "Print the table of mutants in docs/ordering.md as the checker finds it today");
  CLI11_PARSE(app, argc, argv);
  if (litmus->parsed() || mutants->parsed()) {
    fmt::print("{}", litmus->parsed() ? litmus_document() : mutant_table());
    return 0;
  }
  std::vector<Check> checks = all_checks();
  return options.replay.empty() ? run_checks(checks, options) : replay_one(checks, options);
}

}  // namespace
}  // namespace belfry::check

int main(int argc, char** argv) {
  try {
    return belfry::check::main_of(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "belfry-check: {}\n", e.what());
    return 2;
  }
}
