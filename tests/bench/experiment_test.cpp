#include "bench/experiment.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench/gpu_window.hpp"
#include "bench/published.hpp"
#include "bench/record_io.hpp"

namespace belfry::bench {
namespace {

using testing::ElementsAre;

Experiment toy() {
  Experiment experiment;
  experiment.name = "toy";
  experiment.arms = {{"one", "", "op/mini-gda-inline"}, {"two", "", ""}, {"three", "", ""}};
  experiment.metrics = {{"issue", "us", ""}};
  experiment.parameters = {{"bytes", 8, 1, 64, ""}};
  return experiment;
}

// Fault: arms run one after another, so that a drift of the machine looks like a difference between them.
TEST(Experiment, ArmsAreInterleavedAcrossPasses) {
  const Experiment experiment = toy();
  Options options;
  options.passes = 20;
  const RunContext run(experiment, options, Progress(false));
  std::vector<std::pair<std::string, unsigned>> calls;
  run.interleave([&](const std::string& arm, unsigned pass) { calls.emplace_back(arm, pass); });
  ASSERT_EQ(calls.size(), 60u);
  std::set<std::vector<std::string>> orders;
  for (unsigned pass = 0; pass < 20; ++pass) {
    std::vector<std::string> order;
    for (unsigned i = 0; i < 3; ++i) {
      EXPECT_EQ(calls[pass * 3 + i].second, pass);
      order.push_back(calls[pass * 3 + i].first);
    }
    EXPECT_THAT(order, testing::UnorderedElementsAre("one", "two", "three"));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 1u) << "the order never changes";
}

// Fault: records of two GPUs that look like those of one, or of another engine; a rank on another GPU than
// they say.
TEST(Experiment, RecordsSayOnWhichGpus) {
  const Experiment experiment = toy();
  Options options;
  EXPECT_EQ(find(RunContext(experiment, options, Progress(false)).record("one", "issue").parameters, "gpus"),
            nullptr);
  options.lanes = "cuda";
  options.gpus = {2, 0};
  const RunContext run(experiment, options, Progress(false));
  EXPECT_EQ(text_of(run.record("one", "issue").parameters, "gpus"), "2,0");
  EXPECT_EQ(text_of(run.record("one", "issue").parameters, "nic_polls"), "doorbell");
  EXPECT_EQ(find(run.record("one", "issue").parameters, "engine_gpu"), nullptr);
  EXPECT_FALSE(engine_is_elsewhere(run));
  EXPECT_EQ(find(run.record("one", "issue").parameters, "nic_doorbells"), nullptr);
  options.engine = {.gpu = 1, .polls_records = true, .doorbells_on_gpu = true, .unordered_writes = true};
  const RunContext away(experiment, options, Progress(false));
  const Fields told = away.record("one", "issue").parameters;
  EXPECT_EQ(*find(told, "engine_gpu"), Value(std::int64_t{1}));
  EXPECT_EQ(text_of(told, "nic_polls"), "record");
  EXPECT_EQ(text_of(told, "nic_doorbells"), "gpu");
  EXPECT_EQ(text_of(told, "nic_writes"), "unordered");
  EXPECT_TRUE(engine_is_elsewhere(away));
  EXPECT_EQ(gpu_of(run, 0), 2);
  EXPECT_EQ(gpu_of(run, 1), 0);
  EXPECT_EQ(gpu_of(run, 2), 2);
}

// Fault: a choice reaches the records as a number, or a default passes for a setting.
TEST(Experiment, AChoiceHasANameInRecords) {
  Experiment experiment = toy();
  experiment.parameters.push_back({"kind", 0, 0, 1, "", {"small", "large"}});
  Options options;
  const RunContext plain(experiment, options, Progress(false));
  EXPECT_EQ(plain.parameter_value("kind"), Value(std::string("small")));
  EXPECT_FALSE(plain.is_changed("kind"));
  set(options.parameters, "kind", std::int64_t{1});
  const RunContext run(experiment, options, Progress(false));
  EXPECT_EQ(run.parameter("kind"), 1);
  EXPECT_TRUE(run.is_changed("kind"));
  EXPECT_FALSE(run.is_changed("bytes"));
  EXPECT_EQ(*find(run.record("one", "issue").parameters, "kind"), Value(std::string("large")));
  EXPECT_THROW((void)run.is_changed("missing"), std::out_of_range);
}

// Fault: the seed does not fix the order, so that a run cannot be repeated.
TEST(Experiment, TheSeedFixesTheOrder) {
  const Experiment experiment = toy();
  const auto order_of = [&](std::uint64_t seed) {
    Options options;
    options.passes = 8;
    options.seed = seed;
    std::vector<std::string> order;
    RunContext(experiment, options, Progress(false)).interleave([&](const std::string& arm, unsigned) {
      order.push_back(arm);
    });
    return order;
  };
  EXPECT_EQ(order_of(7), order_of(7));
  EXPECT_NE(order_of(7), order_of(8));
}

// Fault: an arm that does not exist is dropped in silence; the order on the command line decides.
TEST(Experiment, ChoosesArms) {
  const Experiment experiment = toy();
  Options options;
  EXPECT_THAT(RunContext(experiment, options, Progress(false)).arms(), ElementsAre("one", "two", "three"));
  options.arms = {"three", "one", "one"};
  EXPECT_THAT(RunContext(experiment, options, Progress(false)).arms(), ElementsAre("one", "three"));
  options.arms = {"four"};
  EXPECT_THROW(RunContext(experiment, options, Progress(false)), std::invalid_argument);
}

// Fault: --quick is ignored, or overrules an explicit number.
TEST(Experiment, PassesAndIterations) {
  const Experiment experiment = toy();
  Options options;
  EXPECT_EQ(RunContext(experiment, options, Progress(false)).passes(), experiment.passes);
  EXPECT_EQ(RunContext(experiment, options, Progress(false)).iterations(), experiment.iterations);
  options.quick = true;
  EXPECT_EQ(RunContext(experiment, options, Progress(false)).passes(), experiment.quick_passes);
  EXPECT_EQ(RunContext(experiment, options, Progress(false)).iterations(), experiment.quick_iterations);
  options.passes = 9;
  options.iterations = 11;
  EXPECT_EQ(RunContext(experiment, options, Progress(false)).passes(), 9u);
  EXPECT_EQ(RunContext(experiment, options, Progress(false)).iterations(), 11u);
}

// Fault: a record that breaks the schema, or lacks what it was measured with.
TEST(Experiment, RecordsCarryWhatTheRunShares) {
  const Experiment experiment = toy();
  Options options;
  set(options.parameters, "bytes", std::int64_t{16});
  RunContext run(experiment, options, Progress(false));
  run.use_nic({NicKind::soft_cpu, "mlx5_0", "1", "BELFRY", "InfiniBand"});
  PassSeries series;
  series.add_samples({1, 2, 3});
  const Record record = run.record("one", "issue", series);
  EXPECT_NO_THROW(check(record));
  EXPECT_EQ(record.unit, "us");
  EXPECT_EQ(record.reference, "op/mini-gda-inline");
  EXPECT_EQ(record.nic, NicKind::soft_cpu);
  EXPECT_EQ(*find(record.parameters, "bytes"), Value(std::int64_t{16}));
  EXPECT_EQ(record.run, run.record("two", "issue").run);
  EXPECT_THROW((void)run.record("one", "speed"), std::invalid_argument);
  EXPECT_THROW((void)run.parameter("size"), std::out_of_range);
}

// Fault: two runs in one file cannot be told apart.
TEST(Experiment, RunIdsDiffer) { EXPECT_NE(make_run_id(), make_run_id()); }

// Fault: an experiment that lists a unit no record may carry, a name twice, or a published row that is not
// there.
TEST(Experiment, TheListIsSound) {
  std::set<std::string> names;
  for (const Experiment& experiment : experiments()) {
    EXPECT_TRUE(names.insert(experiment.name).second) << experiment.name;
    EXPECT_EQ(find_experiment(experiment.name), &experiment);
    EXPECT_TRUE(experiment.run) << experiment.name;
    EXPECT_EQ(experiment.most_processes > 1, static_cast<bool>(experiment.peer)) << experiment.name;
    std::set<std::string> arms;
    for (const ArmInfo& arm : experiment.arms) {
      EXPECT_TRUE(arms.insert(arm.name).second) << arm.name;
      EXPECT_FALSE(arm.description.empty()) << arm.name;
      const auto& all = published_records();
      EXPECT_TRUE(
          arm.reference.empty() ||
          std::any_of(all.begin(), all.end(), [&](const Record& r) { return r.reference == arm.reference; }))
          << arm.reference;
    }
    for (const MetricInfo& metric : experiment.metrics) {
      EXPECT_THAT(known_units(), testing::Contains(std::string_view(metric.unit))) << metric.name;
      EXPECT_FALSE(metric.description.empty()) << metric.name;
    }
    for (const ParameterInfo& parameter : experiment.parameters) {
      EXPECT_LE(parameter.least, parameter.initial) << parameter.name;
      EXPECT_LE(parameter.initial, parameter.most) << parameter.name;
    }
  }
  EXPECT_EQ(find_experiment("none"), nullptr);
}

}  // namespace
}  // namespace belfry::bench
