/// `belfry bench` from end to end, on the software NIC.

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "bench/experiment.hpp"
#include "bench/record_io.hpp"
#include "cli/run_program.hpp"

namespace belfry::cli {
namespace {

namespace fs = std::filesystem;
using bench::Record;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Record> records_of(const std::string& text) {
  std::istringstream in(text);
  return bench::read_json_lines(in, "stdout");
}

std::set<std::string> names_of(const std::vector<Record>& records) {
  std::set<std::string> names;
  for (const Record& record : records) names.insert(record.arm + "/" + record.metric);
  return names;
}

/// Arms of which there is nothing to verify.
bool moves_nothing(const std::string& arm) { return arm == "doorbell" || arm == "fence" || arm == "clock"; }

/// Of every arm the metrics that it has.
std::set<std::string> op_names() {
  std::set<std::string> names = {"doorbell/issue", "fence/issue", "clock/clock_overhead"};
  for (const bench::ArmInfo& arm : bench::find_experiment("op")->arms) {
    if (moves_nothing(arm.name)) continue;
    for (const char* metric : {"issue", "put_completion", "round_trip"})
      names.insert(arm.name + "/" + metric);
  }
  return names;
}

/// What every record of a run of `op` on the software NIC must say.
void expect_sound(const std::vector<Record>& records, std::int64_t processes) {
  for (const Record& record : records) {
    const std::string name = record.arm + "/" + record.metric;
    EXPECT_EQ(record.nic, bench::NicKind::soft_cpu) << name;
    EXPECT_EQ(record.source, bench::Source::measured) << name;
    EXPECT_EQ(record.run, records.front().run) << name;
    EXPECT_EQ(*bench::find(record.parameters, "processes"), bench::Value(processes)) << name;
    EXPECT_EQ(record.passes.size(), 2u) << name;
    EXPECT_EQ(record.count, 2 * 50u) << name;
    EXPECT_THAT(bench::text_of(record.platform, "name"), HasSubstr("software NIC")) << name;
    EXPECT_NE(bench::text_of(record.versions, "rdma_core"), "") << name;
    if (moves_nothing(record.arm)) {
      EXPECT_FALSE(record.verified.has_value());
      continue;
    }
    EXPECT_EQ(record.verified, true) << name;
    EXPECT_GT(*record.min, 0) << name;
  }
}

class Bench : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "belfry-bench-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

// Fault: the figures of one process: an arm or metric is missing, a payload is wrong, or the software NIC is
// not named.
TEST_F(Bench, OpInOneProcess) {
  const Outcome outcome =
      run_belfry({"bench", "op", "--quick", "--iterations", "50", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  EXPECT_EQ(names_of(records), op_names());
  expect_sound(records, 1);
  EXPECT_THAT(outcome.err, HasSubstr("SOFTWARE NIC: figures say nothing about hardware"));
  EXPECT_THAT(outcome.err, HasSubstr("published P-IB"));
}

// Fault: two processes do not find each other, or one is left behind.
TEST_F(Bench, OpInTwoProcesses) {
  const Outcome outcome = run_belfry(
      {"bench", "op", "--quick", "--iterations", "50", "--nic", "soft", "--processes", "2", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  EXPECT_EQ(names_of(records), op_names());
  expect_sound(records, 2);
}

// Fault: files and table do not hold the same records; --arms measures more than was asked for.
TEST_F(Bench, WritesJsonAndCsv) {
  const std::string json = folder_ / "x.jsonl";
  const std::string csv = folder_ / "x.csv";
  const Outcome outcome = run_belfry({"bench", "op", "--quick", "--iterations", "50", "--nic", "soft",
                                      "--arms", "verbs-pointer", "--json", json, "--csv", csv});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream json_in(json);
  std::ifstream csv_in(csv);
  const std::vector<Record> records = bench::read_json_lines(json_in, json);
  EXPECT_EQ(records, bench::read_csv(csv_in, csv));
  EXPECT_EQ(names_of(records), (std::set<std::string>{"verbs-pointer/issue", "verbs-pointer/put_completion",
                                                      "verbs-pointer/round_trip"}));
  EXPECT_THAT(outcome.out, HasSubstr("verbs-pointer"));
  EXPECT_THAT(outcome.err, IsEmpty());
}

/// Every record is the software NIC's and its payload was right.
void expect_verified(const std::vector<Record>& records) {
  for (const Record& record : records) {
    EXPECT_EQ(record.nic, bench::NicKind::soft_cpu) << record.arm << "/" << record.metric;
    EXPECT_EQ(record.verified, true) << record.arm << "/" << record.metric;
  }
}

// Fault: an arm of the published table is missing or loses messages; the arm of nobody's choice runs.
TEST_F(Bench, RateRunsThePublishedTable) {
  const Outcome outcome =
      run_belfry({"bench", "rate", "--quick", "--passes", "1", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  std::set<std::string> expected;
  for (const bench::ArmInfo& arm : bench::find_experiment("rate")->arms) {
    if (arm.name != "custom") expected.insert(arm.name + "/rate");
  }
  EXPECT_EQ(names_of(records), expected);
  expect_verified(records);
  EXPECT_THAT(outcome.err, HasSubstr("rate/mini-gda-t64-q64-s64-w16"));
}

// Fault: options of the custom arm are not what is measured, or not what the record says.
TEST_F(Bench, RateTakesAnArmOfTheUsersOwn) {
  const Outcome outcome =
      run_belfry({"bench",  "rate",    "--quick",   "--passes",  "1",     "--nic",  "soft",
                  "--arms", "custom",  "--threads", "128",       "--qps", "2",      "--blocks",
                  "2",      "--batch", "64",        "--sharing", "warp",  "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  EXPECT_EQ(names_of(records), (std::set<std::string>{"custom/rate"}));
  expect_verified(records);
  const auto& parameters = records.front().parameters;
  EXPECT_EQ(*bench::find(parameters, "threads"), bench::Value(std::int64_t{128}));
  EXPECT_EQ(*bench::find(parameters, "qps"), bench::Value(std::int64_t{2}));
  EXPECT_EQ(*bench::find(parameters, "blocks"), bench::Value(std::int64_t{2}));
  EXPECT_EQ(*bench::find(parameters, "batch"), bench::Value(std::int64_t{64}));
  EXPECT_EQ(*bench::find(parameters, "sharing"), bench::Value(std::string("warp")));
}

// Fault: a setting that cannot be run is measured as another one.
TEST_F(Bench, RateRefusesWhatItCannotRun) {
  const Outcome unknown = run_belfry({"bench", "rate", "--nic", "soft", "--sharing", "2"});
  EXPECT_NE(unknown.exit_code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("--sharing"));
  const Outcome impossible = run_belfry({"bench", "rate", "--nic", "soft", "--threads", "4", "--qps", "3"});
  EXPECT_EQ(impossible.exit_code, 1);
  EXPECT_THAT(impossible.err, HasSubstr("take a multiple"));
  EXPECT_THAT(impossible.out, IsEmpty());
}

// Fault: a scope completes less than it says, so that its put or its signal is missing.
TEST_F(Bench, ScopeCompletesWhatItSays) {
  const Outcome outcome = run_belfry(
      {"bench", "scope", "--quick", "--passes", "1", "--iterations", "50", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  EXPECT_EQ(records.size(), 4 * 5 + 4u);
  expect_verified(records);
}

// Fault: a size is left out, its payload is wrong, or what follows from the sizes is not told.
TEST_F(Bench, InlineComparesEverySize) {
  const Outcome outcome = run_belfry(
      {"bench", "inline", "--quick", "--passes", "1", "--iterations", "50", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  expect_verified(records);
  const std::set<std::string> names = names_of(records);
  for (const char* size : {"0", "8", "12", "28", "220"}) {
    for (const char* payload : {"inline-", "pointer-"}) {
      EXPECT_TRUE(names.contains(std::string(payload) + size + "/rate")) << payload << size;
    }
  }
  for (const char* metric : {"break_even", "issue_break_even", "rate_break_even", "completion_saved",
                             "issue_added", "issue_added_per_chunk"}) {
    EXPECT_TRUE(names.contains(std::string("break-even/") + metric)) << metric;
  }
}

// Fault: a probe's answer or a background message is lost or wrong; a probe that has a queue of its own
// stands behind a whole ring; or the load is not told.
TEST_F(Bench, LoadedProbesBothPaths) {
  const Outcome outcome =
      run_belfry({"bench", "loaded", "--quick", "--background", "2", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  std::set<std::string> expected;
  for (const char* path : {"gda-", "proxy-"}) {
    for (const char* load : {"idle", "shared", "reserved"}) {
      for (const char* metric : {"/round_trip", "/ahead"}) expected.insert(std::string(path) + load + metric);
      if (load != std::string("idle")) expected.insert(std::string(path) + load + "/carried");
    }
  }
  EXPECT_EQ(names_of(records), expected);
  expect_verified(records);
  for (const Record& record : records) {
    if (record.metric == "ahead" && (record.arm == "gda-reserved" || record.arm.ends_with("idle"))) {
      EXPECT_LE(*record.max, 1) << record.arm;
    }
    if (record.metric == "carried") {
      EXPECT_GT(*record.p50, 0) << record.arm;
    }
  }
}

// Fault: a given rate is not kept to.
TEST_F(Bench, LoadedKeepsItsPace) {
  const Outcome outcome =
      run_belfry({"bench", "loaded", "--quick", "--iterations", "100", "--background", "2", "--pace", "5",
                  "--arms", "proxy-reserved", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const Record& record : records_of(outcome.out)) {
    EXPECT_EQ(*bench::find(record.parameters, "pace"), bench::Value(std::int64_t{5}));
    // Two ends of 5000 messages a second each. The first of each block goes at once.
    if (record.metric == "carried") {
      EXPECT_LT(*record.p50, 0.020);
    }
  }
}

// Fault: a state is not measured, its load shows in the target, or the platform does not tell the core's
// state.
TEST_F(Bench, ProxyStateMeasuresEveryState) {
  for (const char* processes : {"1", "2"}) {
    const Outcome outcome = run_belfry({"bench", "proxy-state", "--quick", "--idle-ms", "5", "--load-ms", "5",
                                        "--processes", processes, "--nic", "soft", "--json", "-"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    std::set<std::string> expected;
    for (const char* arm : {"cold", "warm", "contended"}) {
      for (const char* pinned : {"", "-pinned"}) {
        for (const char* metric : {"/put_completion", "/round_trip", "/rate"})
          expected.insert(std::string(arm) + pinned + metric);
      }
    }
    std::set<std::string> names;
    for (const Record& record : records_of(outcome.out)) {
      EXPECT_EQ(*bench::find(record.parameters, "idle-policy"), bench::Value(std::string("sleep")));
      if (record.metric == "frequency") continue;  // where the system tells it
      names.insert(record.arm + "/" + record.metric);
      EXPECT_EQ(record.verified, true) << record.arm << "/" << record.metric;
    }
    EXPECT_EQ(names, expected);
  }
}

// Fault: a run whose defaults wait so long for each state that nobody waits for it, or that says nothing of
// how far it is. Three seconds on a quiet machine.
TEST_F(Bench, ProxyStateEndsSoonAndSaysHowFarItIs) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome =
      run_belfry({"bench", "proxy-state", "--quick", "--nic", "soft", "--progress", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_THAT(outcome.err, HasSubstr("pass 1 of 1, cold-pinned"));
  for (const Record& record : records_of(outcome.out)) {
    const bool contended = record.arm.starts_with("contended");
    EXPECT_EQ(*bench::find(record.parameters, "iterations"), bench::Value(std::int64_t{contended ? 2 : 20}));
  }
}

bool has_gpu() { return fs::exists("/dev/nvidia0"); }

// Fault: a machine without a GPU gets CUDA's words alone; two processes on one GPU wait for each other.
TEST_F(Bench, LanesOnAGpuAreRefusedWithTheRemedy) {
  const Outcome processes = run_belfry({"bench", "op", "--lanes", "cuda", "--processes", "2"});
  EXPECT_EQ(processes.exit_code, 2);
  EXPECT_THAT(processes.err, HasSubstr("without --processes 2"));
  const Outcome gpus = run_belfry({"bench", "op", "--gpus", "0,1"});
  EXPECT_EQ(gpus.exit_code, 2);
  EXPECT_THAT(gpus.err, HasSubstr("with --lanes cuda only"));
  const Outcome registers = run_belfry({"bench", "residency", "--nic", "soft", "--quick"});
  EXPECT_EQ(registers.exit_code, 1);
  EXPECT_THAT(registers.err, HasSubstr("residency needs --lanes cuda"));
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  const Outcome outcome = run_belfry({"bench", "handoff", "--lanes", "cuda", "--quick"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("belfry doctor gpu"), HasSubstr("built without nvcc")));
}

// Fault: a place that was asked for is passed over where kernels run on a CPU, and the user believes it was
// measured.
TEST_F(Bench, PlacesOfMemoryNeedAGpu) {
  for (const char* option : {"--send-queue", "--completions", "--record", "--window", "--counters"}) {
    const bool lies_in_host_memory = std::string(option) == "--window" || std::string(option) == "--counters";
    const Outcome outcome =
        run_belfry({"bench", "op", "--quick", option, lies_in_host_memory ? "gpu" : "host"});
    EXPECT_EQ(outcome.exit_code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr("add --lanes cuda")) << option;
  }
}

class BenchOnGpu : public Bench, public testing::WithParamInterface<const char*> {};

// Fault: an experiment whose kernels run on a GPU reads or writes there what only a CPU reaches, or does not
// say where it ran.
TEST_P(BenchOnGpu, RunsAndVerifies) {
  if (!has_gpu()) GTEST_SKIP() << "needs a GPU";
  const Outcome outcome =
      run_belfry({"bench", GetParam(), "--lanes", "cuda", "--quick", "--nic", "soft", "--json", "-"},
                 {"CUDA_MODULE_LOADING=EAGER"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const Record& record : records_of(outcome.out)) {
    EXPECT_NE(record.verified, false) << record.arm << "/" << record.metric;
    EXPECT_EQ(bench::text_of(record.parameters, "lanes"), "cuda") << record.arm << "/" << record.metric;
  }
}
INSTANTIATE_TEST_SUITE_P(Experiments, BenchOnGpu,
                         testing::Values("op", "inline", "scope", "rate", "handoff", "proxy-rate", "loaded",
                                         "proxy-state", "goodput", "payload", "publication", "residency"));

// Fault: queues in host memory are measured as the engine's, or beside ones that are, and the records do not
// say so.
TEST_F(Bench, QueuesOfAGpuInHostMemoryAreTheCpuNics) {
  if (!has_gpu()) GTEST_SKIP() << "needs a GPU";
  const Outcome outcome =
      run_belfry({"bench", "op", "--lanes", "cuda", "--quick", "--nic", "soft", "--json", "-", "--send-queue",
                  "host", "--arms", "gda-system-release,gda-system-fence"},
                 {"CUDA_MODULE_LOADING=EAGER"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const Record& record : records_of(outcome.out)) {
    EXPECT_EQ(record.nic, bench::NicKind::soft_cpu);
    EXPECT_EQ(bench::text_of(record.parameters, "send_queue_place"), "host");
    EXPECT_NE(record.verified, false) << record.arm << "/" << record.metric;
  }
  const Outcome refused = run_belfry({"bench", "op", "--lanes", "cuda", "--quick", "--nic", "soft",
                                      "--send-queue", "host", "--arms", "gda-value"},
                                     {"CUDA_MODULE_LOADING=EAGER"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("host memory"));
}

// Fault: records that do not say how the NIC's engine was set up, and a `litmus` that takes an ordering for
// safe which is not where it polls records: the settings are out of the environment by the time an experiment
// runs.
TEST_F(Bench, RecordsSayHowTheEngineIsSetUp) {
  if (!has_gpu()) GTEST_SKIP() << "needs a GPU";
  const Outcome outcome = run_belfry(
      {"bench", "litmus", "--lanes", "cuda", "--quick", "--arms", "gpu-fence", "--nic", "soft", "--json",
       "-"},
      {"CUDA_MODULE_LOADING=EAGER", "BELFRY_SOFTNIC_GPU_POLL=record", "BELFRY_SOFTNIC_GPU_WRITES=unordered"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const Record& record : records_of(outcome.out)) {
    EXPECT_EQ(bench::text_of(record.parameters, "nic_polls"), "record");
    EXPECT_EQ(bench::text_of(record.parameters, "nic_writes"), "unordered");
    EXPECT_EQ(bench::text_of(record.parameters, "claimed"), "unsafe");
  }
}

// Fault: an arm of `proxy-rate` loses messages, or its chains are set against other workers or rings.
TEST_F(Bench, ProxyRateRunsItsTable) {
  const Outcome outcome = run_belfry({"bench", "proxy-rate", "--quick", "--passes", "1", "--iterations",
                                      "2000", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  EXPECT_EQ(names_of(records),
            (std::set<std::string>{"t1-r1-b1/rate", "t1-r1-b16/rate", "t1-r32-b1/rate", "t1-r32-b16/rate",
                                   "t8-r32-b16/rate", "t1-r1-b16/rate_over_b1", "t1-r32-b16/rate_over_b1"}));
  expect_verified(records);
  EXPECT_THAT(outcome.err, HasSubstr("proxy/capacity-mini-proxy-b16-t1-r32-warm"));
}

// Fault: settings of the custom arm are not what is measured, or one that cannot be is measured as another.
TEST_F(Bench, ProxyRateTakesAnArmOfTheUsersOwn) {
  const Outcome outcome =
      run_belfry({"bench", "proxy-rate", "--quick", "--passes", "1", "--nic", "soft", "--arms", "custom",
                  "--workers", "2", "--rings", "3", "--chain", "5", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  EXPECT_EQ(names_of(records), (std::set<std::string>{"custom/rate"}));
  expect_verified(records);
  for (const auto& [name, value] : {std::pair{"workers", 2}, std::pair{"rings", 3}, std::pair{"chain", 5}}) {
    EXPECT_EQ(*bench::find(records.front().parameters, name), bench::Value(std::int64_t{value})) << name;
  }
  const Outcome impossible = run_belfry({"bench", "proxy-rate", "--nic", "soft", "--workers", "3"});
  EXPECT_EQ(impossible.exit_code, 1);
  EXPECT_THAT(impossible.err, HasSubstr("raise --rings"));
}

// Fault: an arm of `handoff` loses descriptors, or is not set against the bare store.
TEST_F(Bench, HandoffNeedsNoNic) {
  const Outcome outcome =
      run_belfry({"bench", "handoff", "--quick", "--passes", "1", "--rings", "3", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  std::map<std::string, std::int64_t> rings_of = {
      {"tuned-rings", 3}, {"tuned-r2", 2}, {"tuned-r4", 4}, {"tuned-r16", 16}};
  std::set<std::string> expected = {"bare/enqueue"};
  for (const auto& [arm, rings] : rings_of) expected.insert(arm + "/rate");
  for (const char* arm : {"tuned", "tuned-published", "shared-tuned", "baseline", "baseline-published"}) {
    for (const char* metric : {"/rate", "/enqueue", "/enqueue_over_bare"})
      expected.insert(std::string(arm) + metric);
  }
  EXPECT_EQ(names_of(records), expected);
  for (const Record& record : records) {
    EXPECT_EQ(record.nic, bench::NicKind::none) << record.arm;
    EXPECT_EQ(record.verified, true) << record.arm << "/" << record.metric;
    const std::int64_t rings = rings_of.contains(record.arm) ? rings_of.at(record.arm) : 1;
    EXPECT_EQ(*bench::find(record.parameters, "rings"), bench::Value(rings)) << record.arm;
  }
}

// Fault: a size of `goodput` moves other bytes, or what is derived from the sizes is not what was measured.
TEST_F(Bench, GoodputFindsTheFirstSizeNearItsReference) {
  const Outcome outcome =
      run_belfry({"bench", "goodput", "--quick", "--arms", "gda-64,gda-7168,gda-1048576,proxy-7168,gda",
                  "--qps", "2", "--reference", "1", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  expect_verified(records);
  EXPECT_EQ(names_of(records),
            (std::set<std::string>{"gda-64/goodput", "gda-7168/goodput", "gda-1048576/goodput",
                                   "proxy-7168/goodput", "gda/reference", "gda/size_at_90_percent"}));
  for (const Record& record : records) {
    if (record.metric == "reference") {
      EXPECT_EQ(record.p50, 1e-3);
    }
    // 1 MB/s: the smallest size does that many times over.
    if (record.metric == "size_at_90_percent") {
      EXPECT_EQ(record.p50, 64);
    }
  }
}

// Fault: a form of payload arrives as another one's, or an arm is missing.
TEST_F(Bench, PayloadMeasuresEachFormAndSize) {
  const Outcome outcome = run_belfry({"bench", "payload", "--quick", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  expect_verified(records);
  std::set<std::string> expected;
  for (const bench::ArmInfo& arm : bench::find_experiment("payload")->arms)
    for (const char* metric : {"/issue", "/put_completion"}) expected.insert(arm.name + metric);
  EXPECT_EQ(names_of(records), expected);
}

// Fault: lanes that come spread in time lose messages or wait for each other for ever.
TEST_F(Bench, PublicationBearsLaneDrift) {
  const Outcome outcome = run_belfry({"bench", "publication", "--quick", "--iterations", "600", "--warps",
                                      "2", "--nic", "soft", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  expect_verified(records);
  std::set<std::string> expected;
  for (const bench::ArmInfo& arm : bench::find_experiment("publication")->arms)
    for (const char* metric : {"/rate", "/in_put"}) expected.insert(arm.name + metric);
  EXPECT_EQ(names_of(records), expected);
  for (const Record& record : records) {
    const bool drifts = record.arm.ends_with("-drift");
    EXPECT_EQ(*bench::find(record.parameters, "drift-ns"), bench::Value(std::int64_t{drifts ? 1000 : 0}));
  }
}

// Fault: an experiment of the software NIC misses an arm, or does not check what it moves.
TEST_F(Bench, SoftnicPricesItself) {
  const Outcome outcome = run_belfry({"bench", "softnic", "--quick", "--passes", "1", "--iterations", "50",
                                      "--idle-ms", "100", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Record> records = records_of(outcome.out);
  EXPECT_EQ(names_of(records),
            (std::set<std::string>{"verbs-inline/put_completion", "rate-verbs/rate", "rate-devx/rate",
                                   "copy-64k/goodput", "copy-64k/memcpy", "copy-64k/goodput_over_memcpy",
                                   "cores/cross_core", "idle/idle_cpu", "idle/resident_added"}));
  for (const Record& record : records) {
    EXPECT_EQ(record.nic, record.arm == "cores" ? bench::NicKind::none : bench::NicKind::soft_cpu);
    if (record.arm != "idle" && record.arm != "cores") {
      EXPECT_EQ(record.verified, true) << record.arm;
    }
  }
}

/// The process that `--processes 2` has started, looked for among all; 0 if it does not appear.
/// \param mark an argument that no other process has
pid_t find_peer(const std::string& mark) {
  for (int i = 0; i < 1000; ++i) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline");
      const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      if (line.find("--peer-of") != line.npos && line.find(mark) != line.npos) {
        return static_cast<pid_t>(std::stol(entry.path().filename().string()));
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

// Fault: the other process dies, and this one waits for it for ever, or reports figures all the same.
TEST_F(Bench, AKilledPeerEndsTheRun) {
  const std::string seed = std::to_string(1000000000 + getpid());
  auto run = std::async(std::launch::async, [&] {
    return run_belfry({"bench", "op", "--nic", "soft", "--processes", "2", "--passes", "1", "--iterations",
                       "1000000000", "--seed", seed});
  });
  const pid_t peer = find_peer(seed);
  EXPECT_GT(peer, 0);
  if (peer > 0) kill(peer, SIGKILL);
  const Outcome outcome = run.get();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("the peer process was killed by signal 9"));
}

// Fault: a path that cannot be written is noticed when everything has been measured.
TEST_F(Bench, UnwritablePathFailsBeforeMeasuring) {
  for (const char* option : {"--json", "--csv"}) {
    const std::string path = folder_ / "missing" / "x";
    // A run of this length would end in the test's time limit.
    const Outcome outcome =
        run_belfry({"bench", "op", "--nic", "soft", "--iterations", "1000000000", option, path});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(path));
    EXPECT_THAT(outcome.err, HasSubstr("nothing has been measured"));
  }
}

// Fault: a device that is not there ends in a crash, or in silence on the software NIC instead.
TEST_F(Bench, AnUnknownDeviceIsNamed) {
  const Outcome outcome = run_belfry({"bench", "op", "--quick", "--nic", "mlx5_99"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("belfry: "));
  EXPECT_THAT(outcome.err, HasSubstr("mlx5_99"));
}

// Fault: a setting of the software NIC that it refuses leads to a run without it.
TEST_F(Bench, AWrongSettingOfTheSoftwareNicIsNamed) {
  const Outcome outcome =
      run_belfry({"bench", "op", "--quick", "--nic", "soft"}, {"BELFRY_SOFTNIC_DEVICES=99"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("BELFRY_SOFTNIC_DEVICES"));
}

// Fault: on Ethernet the wrong GID is taken, and the choice is not told.
TEST_F(Bench, OpOnEthernetPrintsTheGidAndItsReason) {
  const Outcome outcome = run_belfry({"bench", "op", "--quick", "--iterations", "50", "--nic", "soft"},
                                     {"BELFRY_SOFTNIC_LINK=eth"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("note: GID index 3"));
}

// Fault: the seed reaches one end only, so that the other checks against the wrong payload.
TEST_F(Bench, TheSeedReachesBothEnds) {
  const Outcome outcome = run_belfry({"bench", "op", "--quick", "--iterations", "50", "--nic", "soft",
                                      "--processes", "2", "--seed", "77", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_sound(records_of(outcome.out), 2);
}

}  // namespace
}  // namespace belfry::cli
