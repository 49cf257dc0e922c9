/// The command line: what it prints, what it refuses, and with which exit code.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "bench/experiment.hpp"
#include "cli/run_program.hpp"

namespace belfry::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Fault: help goes to stderr, ends with an error, or shows no way in.
TEST(Program, HelpShowsExamplesAndExitCodes) {
  const Outcome outcome = run_belfry({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("belfry bench op"));
  EXPECT_THAT(outcome.out, HasSubstr("Exit codes: 0"));
  EXPECT_THAT(outcome.err, IsEmpty());
  for (const char* command : {"bench", "decode", "doctor", "list", "softnic", "version"}) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string("\n  ") + command)) << command;
    EXPECT_EQ(run_belfry({command, "--help"}).exit_code, 0) << command;
  }
}

// Fault: a wrong command line ends with another code than 2, or without a word.
TEST(Program, WrongCommandLinesEndWithTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"bogus"},
      {"bench"},
      {"bench", "bogus"},
      {"bench", "op", "--bogus"},
      {"bench", "op", "--passes", "0"},
      {"bench", "op", "--passes", "-1"},
      {"bench", "op", "--passes", "x"},
      {"bench", "op", "--iterations", "0"},
      {"bench", "op", "--processes", "3"},
      {"bench", "op", "--arms", "bogus"},
      {"bench", "op", "--arms", "verbs-inline,bogus"},
      {"bench", "op", "--seed", "-1"},
      {"bench", "op", "--json"},
      {"bench", "op", "--json", "-", "--csv", "-"},
      {"bench", "softnic", "--processes", "2"},
      {"bench", "softnic", "--idle-ms", "1"},
      {"bench", "softnic", "--nic", "mlx5_7"},
      {"list", "bogus"},
  };
  for (const auto& arguments : wrong) {
    const Outcome outcome = run_belfry(arguments);
    std::string line;
    for (const auto& argument : arguments) line += argument + ' ';
    EXPECT_EQ(outcome.exit_code, 2) << line << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("belfry: ")) << line;
    EXPECT_THAT(outcome.out, IsEmpty()) << line;
  }
}

// Fault: the options of the other process of --processes 2 confuse whoever reads the help.
TEST(Program, HiddenOptionsStayHidden) {
  const Outcome outcome = run_belfry({"bench", "op", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* option : {"--json", "--csv", "--passes", "--iterations", "--quick", "--nic", "--processes",
                             "--arms", "--seed", "--progress"}) {
    EXPECT_THAT(outcome.out, HasSubstr(option));
  }
  EXPECT_THAT(outcome.out, Not(HasSubstr("--peer-of")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("--softnic-fabric")));
}

// Fault: an experiment, arm or metric that `belfry list` does not name.
TEST(Program, ListNamesEverything) {
  const Outcome text = run_belfry({"list"});
  const Outcome json = run_belfry({"list", "--json"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(json.exit_code, 0);
  const auto listed = nlohmann::json::parse(json.out).at("experiments");
  ASSERT_EQ(listed.size(), bench::experiments().size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const bench::Experiment& experiment = bench::experiments()[i];
    EXPECT_EQ(listed[i].at("name"), experiment.name);
    EXPECT_THAT(text.out, HasSubstr(experiment.description));
    ASSERT_EQ(listed[i].at("arms").size(), experiment.arms.size());
    for (std::size_t a = 0; a < experiment.arms.size(); ++a) {
      EXPECT_EQ(listed[i].at("arms")[a].at("name"), experiment.arms[a].name);
      EXPECT_THAT(text.out, HasSubstr(experiment.arms[a].name));
    }
    ASSERT_EQ(listed[i].at("metrics").size(), experiment.metrics.size());
    for (std::size_t m = 0; m < experiment.metrics.size(); ++m) {
      EXPECT_EQ(listed[i].at("metrics")[m].at("unit"), experiment.metrics[m].unit);
      EXPECT_THAT(text.out, HasSubstr(experiment.metrics[m].name));
    }
  }
}

// Fault: a program that cannot say which source it was built from.
TEST(Program, Version) {
  const Outcome outcome = run_belfry({"version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("belfry [0-9.]+ \\([0-9a-z-]+\\)\n"));
}

}  // namespace
}  // namespace belfry::cli
