/// \file
/// `belfry launch`, and belfry under other launchers.

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "bench/record_io.hpp"
#include "cli/run_program.hpp"

namespace belfry::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "belfry-launch-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs a script in each rank, in this test's folder. \param options of `belfry launch`
  Outcome launch(std::vector<std::string> options, const std::string& script) const {
    std::vector<std::string> words = {"launch"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "bash", "-c", "cd " + folder_.string() + "\n" + script});
    return run_belfry(words);
  }
  bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  /// Waits for a file that somebody else writes; false if it does not come.
  bool comes(const std::string& name) const {
    for (int i = 0; i < 1000 && !has(name); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return has(name);
  }
  /// Waits until nobody runs with this id, or as its zombie only.
  static bool is_gone(pid_t pid) {
    for (int i = 0; i < 1000; ++i) {
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string line;
      if (!std::getline(stat, line) || line.find(") Z ") != line.npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  pid_t pid_in(const std::string& name) const {
    std::ifstream file(folder_ / name);
    pid_t pid = 0;
    file >> pid;
    return pid;
  }

  fs::path folder_;
};

// Fault: ranks do not know their place, or their output cannot be told apart.
TEST_F(Launch, RanksKnowTheirPlace) {
  const Outcome outcome =
      launch({"-n", "3", "--prefix"},
             "echo $BELFRY_BOOTSTRAP_RANK of $BELFRY_BOOTSTRAP_SIZE\n"
             "echo $BELFRY_BOOTSTRAP_ADDRESS $BELFRY_SOFTNIC_FABRIC > address.$BELFRY_BOOTSTRAP_RANK\n"
             "printf 'no end' >&2\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* line : {"[0] 0 of 3\n", "[1] 1 of 3\n", "[2] 2 of 3\n"})
    EXPECT_THAT(outcome.out, HasSubstr(line));
  EXPECT_THAT(outcome.err, HasSubstr("[1] no end\n"));
  std::set<std::string> addresses;
  for (const char* name : {"address.0", "address.1", "address.2"}) {
    std::ifstream file(folder_ / name);
    std::string line;
    std::getline(file, line);
    addresses.insert(line);
  }
  ASSERT_EQ(addresses.size(), 1u);
  EXPECT_THAT(*addresses.begin(), testing::MatchesRegex("127\\.0\\.0\\.1:[0-9]+ launch-[0-9]+"));
}

// Fault: a rank dies and the others wait for it for ever, or its exit code is lost.
TEST_F(Launch, TheFirstFailureEndsTheOthers) {
  const Outcome outcome =
      launch({"-n", "3"},
             "r=$BELFRY_BOOTSTRAP_RANK\n"
             "trap 'touch ended.$r; exit 0' TERM\n"
             "touch up.$r\n"
             "if [ $r = 1 ]; then while [ ! -e up.0 -o ! -e up.2 ]; do sleep 0.01; done; exit 7; fi\n"
             "while :; do sleep 0.02; done\n");
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 ended with exit code 7; ending the others"));
  EXPECT_TRUE(has("ended.0"));
  EXPECT_TRUE(has("ended.2"));
}

// Fault: a rank that a signal ended passes for one that ended well.
TEST_F(Launch, ASignalIsAFailure) {
  const Outcome outcome = launch({"-n", "2"}, "[ $BELFRY_BOOTSTRAP_RANK = 0 ] || kill -KILL $$\nsleep 100\n");
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 was killed by signal 9 (Killed)"));
}

// Fault: a signal reaches the launcher alone, which dies and leaves its ranks.
TEST_F(Launch, SignalsArePassedOn) {
  const Outcome outcome = launch({"-n", "2"},
                                 "r=$BELFRY_BOOTSTRAP_RANK\n"
                                 "trap 'touch usr.$r' USR1\n"
                                 "trap 'touch term.$r; exit 0' TERM\n"
                                 "touch up.$r\n"
                                 "if [ $r = 0 ]; then\n"
                                 "  while [ ! -e up.1 ]; do sleep 0.01; done\n"
                                 "  kill -USR1 $PPID\n"
                                 "  while [ ! -e usr.0 -o ! -e usr.1 ]; do sleep 0.01; done\n"
                                 "  kill -TERM $PPID\n"
                                 "fi\n"
                                 "while :; do sleep 0.02; done\n");
  EXPECT_EQ(outcome.exit_code, 128 + SIGTERM) << outcome.err;
  for (const char* name : {"usr.0", "usr.1", "term.0", "term.1"}) EXPECT_TRUE(has(name)) << name;
}

// Fault: what a rank has started outlives the launch: in the background, in a session of its own, or deaf to
// SIGTERM.
TEST_F(Launch, NobodyIsLeftBehind) {
  const Outcome outcome =
      launch({"-n", "2", "--grace", "0"},
             "r=$BELFRY_BOOTSTRAP_RANK\n"
             "sleep 1000 & echo $! > background.$r\n"
             "setsid sleep 1000 & echo $! > session.$r\n"
             "if [ $r = 1 ]; then trap '' TERM; touch deaf; while :; do sleep 0.02; done; fi\n"
             "while [ ! -e deaf ]; do sleep 0.01; done\n"
             "exit 3\n");
  EXPECT_EQ(outcome.exit_code, 3);
  for (const char* name : {"background.0", "background.1", "session.0", "session.1"}) {
    ASSERT_GT(pid_in(name), 0) << name;
    EXPECT_TRUE(is_gone(pid_in(name))) << name;
  }
}

// Fault: the launcher is killed, and its ranks go on.
TEST_F(Launch, RanksDieWithTheLauncher) {
  const Outcome outcome =
      launch({"-n", "2"},
             "r=$BELFRY_BOOTSTRAP_RANK\n"
             "echo $$ > pid.$r\n"
             "if [ $r = 1 ]; then while [ ! -s pid.0 ]; do sleep 0.01; done; kill -KILL $PPID; fi\n"
             "while :; do sleep 0.02; done\n");
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
  for (const char* name : {"pid.0", "pid.1"}) {
    ASSERT_TRUE(comes(name));
    EXPECT_TRUE(is_gone(pid_in(name))) << name;
  }
}

// Fault: a command line that cannot work starts something, or is not explained.
TEST_F(Launch, RefusesWhatItCannotRun) {
  const Outcome missing = run_belfry({"launch", "-n", "2", "--", "belfry-has-no-such-program"});
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_THAT(missing.err, HasSubstr("belfry launch: belfry-has-no-such-program: command not found"));
  EXPECT_EQ(run_belfry({"launch", "-n", "2"}).exit_code, 2);
  EXPECT_EQ(run_belfry({"launch", "--", "true"}).exit_code, 2);
  EXPECT_EQ(run_belfry({"launch", "-n", "0", "--", "true"}).exit_code, 2);
}

std::vector<std::string> bench_words(const std::string& experiment) {
  return {BELFRY_PROGRAM, "bench", experiment, "--quick", "--iterations", "50",
          "--nic",        "soft",  "--passes", "1",       "--json",       "-"};
}

/// One rank has reported, for two processes.
void expect_one_report(const Outcome& outcome, std::int64_t processes) {
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream in(outcome.out);
  const auto records = bench::read_json_lines(in, "stdout");
  ASSERT_FALSE(records.empty());
  for (const bench::Record& record : records) {
    EXPECT_EQ(record.run, records.front().run);
    EXPECT_EQ(*bench::find(record.parameters, "processes"), bench::Value(processes));
    if (record.verified) {
      EXPECT_EQ(record.verified, true) << record.arm;
    }
  }
}

// Fault: ranks do not find each other, each measures alone, or all report.
TEST_F(Launch, BenchmarksKnowTheirRank) {
  for (const char* ranks : {"2", "4"}) {
    std::vector<std::string> words = {"launch", "-n", ranks, "--"};
    const auto bench = bench_words("op");
    words.insert(words.end(), bench.begin(), bench.end());
    expect_one_report(run_belfry(words), 2);
  }
  std::vector<std::string> words = {"launch", "-n", "3", "--"};
  const auto bench = bench_words("rate");
  words.insert(words.end(), bench.begin(), bench.end());
  words.insert(words.end(), {"--arms", "t1-q1-s1-w1"});
  const Outcome outcome = run_belfry(words);
  expect_one_report(outcome, 1);
  EXPECT_THAT(outcome.err, HasSubstr("3 ranks were started, of which this experiment uses 1"));
}

// Fault: mpirun's ranks are not recognised: four processes measure alone.
TEST_F(Launch, MpirunStartsBenchmarks) {
  if (run_program({"mpirun", "--version"}).exit_code != 0) {
    GTEST_SKIP() << "no mpirun here: install the package openmpi-bin";
  }
  std::vector<std::string> words = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"};
  const auto bench = bench_words("op");
  words.insert(words.end(), bench.begin(), bench.end());
  const Outcome outcome =
      run_program(words, {"OMPI_MCA_plm=isolated", "OMPI_MCA_rmaps_base_oversubscribe=1"});
  expect_one_report(outcome, 2);
  // Ranks 2 and 3 are not used, and whoever has started them reads so.
  EXPECT_THAT(outcome.err,
              HasSubstr("4 ranks were started, of which this experiment uses 2: it measures between"));
  EXPECT_THAT(run_belfry({"bench", "op", "--help"}).out, HasSubstr("Further ranks end at once"));
  EXPECT_THAT(run_belfry({"bench", "rate", "--help"}).out, HasSubstr("All ends are in one process"));
}

// Fault: torchrun's variables are not recognised, or its own port is taken.
TEST_F(Launch, TorchrunsVariablesAreEnough) {
  const Outcome outcome =
      launch({"-n", "2"},
             "port=${BELFRY_BOOTSTRAP_ADDRESS##*:}\n"
             "export RANK=$BELFRY_BOOTSTRAP_RANK WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port\n"
             "unset BELFRY_BOOTSTRAP_RANK BELFRY_BOOTSTRAP_SIZE BELFRY_BOOTSTRAP_ADDRESS\n"
             "exec " BELFRY_PROGRAM
             " bench op --quick --iterations 50 --nic soft --passes 1 --arms gda-inline --json -\n");
  expect_one_report(outcome, 2);
}

}  // namespace
}  // namespace belfry::cli
