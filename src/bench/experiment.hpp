#pragma once
/// \file
/// What an experiment is, and what it is given to run with. One experiment is one file that returns an
/// Experiment; experiments.cpp lists them.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/platform.hpp"
#include "bench/record.hpp"
#include "bench/statistics.hpp"

namespace belfry::bench {

struct MetricInfo {
  std::string name;
  std::string unit;
  std::string description;
};

struct ArmInfo {
  std::string name;
  std::string description;
  std::string reference;  ///< published row to read it against; may be empty
};

/// A setting of its own that an experiment takes, besides the common options.
struct ParameterInfo {
  std::string name;  ///< the option is --NAME
  std::int64_t initial;
  std::int64_t least;
  std::int64_t most;
  std::string description;
  /// Names of 0, 1, ..., where it is a choice: then these are what the option and the records say.
  std::vector<std::string> choices = {};
};

/// What the software NIC's engine on a GPU has been told. The program that runs an experiment knows: an
/// experiment cannot read it in an environment that has been cleaned for the process's children.
struct EngineSettings {
  std::optional<int> gpu;  ///< executes the queues of all GPUs; unset: each GPU those in its memory
  bool polls_records = false;
  bool doorbells_on_gpu = false;  ///< kernels ring registers in GPU memory: its test option
  bool unordered_writes = false;
  std::chrono::microseconds idle{200};  ///< it leaves the GPU after so long without work
};

/// The options that all experiments share.
struct Options {
  unsigned passes = 0;            ///< 0: the experiment's own default
  std::uint64_t iterations = 0;   ///< a pass; 0: the experiment's own default
  bool quick = false;             ///< few passes and iterations: a test that it works, not a measurement
  std::string nic;                ///< auto, soft, NAME or NAME:PORT; empty: BELFRY_NIC, or auto
  unsigned processes = 1;         ///< 1 or 2
  std::vector<std::string> arms;  ///< empty: all
  std::uint64_t seed = 1;         ///< of everything random, the order of the arms included
  Fields parameters;              ///< the experiment's own
  std::string lanes = "cpu";      ///< what runs kernels: cpu or cuda
  std::vector<int> gpus = {0};    ///< with cuda, by CUDA's numbers: rank r's kernels and memory are on r % n
  EngineSettings engine;          ///< with cuda and the software NIC
  std::string send_queue_place = "gpu";  ///< with cuda, where send queues lie: gpu or host
  std::string completions_place;         ///< with cuda, where completion queues lie; empty: as send queues
  std::string record_place;              ///< with cuda, where doorbell records lie; empty: as send queues
  std::string window_place = "host";     ///< with cuda, where windows lie of queues in host memory
  std::string counters_place = "host";   ///< with cuda, where its completions are counted
  std::string listen_at;  ///< HOST:PORT: a launcher has started the other process, which connects here
  std::string fabric;     ///< the software NIC's, for the other process to join; empty without one
};

/// Where progress goes: stderr, or nowhere.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  void say(const std::string& line) const;

 private:
  bool shown_;
};

struct Experiment;

/// One run of one experiment: its settings, and blank records that carry what all its records share.
class RunContext {
 public:
  /// Throws std::invalid_argument for an arm that the experiment has not.
  RunContext(const Experiment& experiment, Options options, Progress progress);

  const Experiment& experiment() const { return experiment_; }
  const Options& options() const { return options_; }
  const Progress& progress() const { return progress_; }

  unsigned passes() const;
  std::uint64_t iterations() const;

  /// An experiment's own parameter: as given, or its default; of a choice, its number. Throws
  /// std::out_of_range for one that the experiment has not.
  std::int64_t parameter(std::string_view name) const;

  /// Whether it has been set to something else than its default.
  bool is_changed(std::string_view name) const;

  /// The same as records carry it.
  Value parameter_value(std::string_view name) const;

  /// The arms chosen, in the experiment's order.
  const std::vector<std::string>& arms() const { return arms_; }

  /// States the NIC that the run turned out to use. Before that, records say "none".
  void use_nic(const NicDescription& nic);
  const NicDescription& nic() const { return nic_; }

  /// Adds a line about a choice made (GID, MTU, device), printed above the tables.
  void note(std::string line) { notes_.push_back(std::move(line)); }
  const std::vector<std::string>& notes() const { return notes_; }

  /// A record of one arm and metric, all but its figures filled in. Throws std::invalid_argument for a
  /// metric that the experiment has not.
  Record record(const std::string& arm, const std::string& metric) const;

  /// The same with a series' figures.
  Record record(const std::string& arm, const std::string& metric, const PassSeries& series) const;

  /// Calls `measure(arm, pass)` for all chosen arms in every pass. Arms are interleaved: each pass runs
  /// all of them, in an order of its own (from the seed), so that a slow drift of the machine does not
  /// favour one.
  void interleave(const std::function<void(const std::string& arm, unsigned pass)>& measure) const;

 private:
  const ParameterInfo& parameter_info(std::string_view name) const;

  const Experiment& experiment_;
  Options options_;
  Progress progress_;
  std::vector<std::string> arms_;
  NicDescription nic_;
  Fields platform_;
  Fields versions_;
  std::string id_;
  std::vector<std::string> notes_;
};

/// The one of a table of arms that has this name. Throws std::out_of_range.
/// \tparam Table of structs with a `name`
template <class Table>
const auto& find_arm(const Table& table, std::string_view name) {
  for (const auto& arm : table)
    if (name == arm.name) return arm;
  throw std::out_of_range("no arm '" + std::string(name) + "' in the table");
}

/// Whether an arm that is there for the user's own settings is asked for: by its name, or by one of them.
bool wants_arm(const RunContext& run, const std::string& arm);

struct Experiment {
  std::string name;
  std::string description;
  std::vector<ArmInfo> arms;
  std::vector<MetricInfo> metrics;
  std::vector<ParameterInfo> parameters;
  bool needs_nic = true;
  bool runs_on_gpu = false;  ///< with --lanes cuda
  /// With --lanes cuda: variables that the software NIC reads when the program starts, unless the user has
  /// set them.
  std::vector<std::pair<std::string, std::string>> gpu_environment = {};
  bool software_nic_only = false;  ///< it measures the software NIC itself
  unsigned most_processes = 1;
  unsigned passes = 5;               ///< default
  std::uint64_t iterations = 20000;  ///< default, a pass
  unsigned quick_passes = 2;
  std::uint64_t quick_iterations = 200;
  std::function<std::vector<Record>(RunContext&)> run;
  /// The other process of `--processes 2`: serves until its peer is done. \param address HOST:PORT
  std::function<void(RunContext&, const std::string& address)> peer;
};

/// All experiments, in the order in which they are listed.
const std::vector<Experiment>& experiments();

/// nullptr if there is none of this name.
const Experiment* find_experiment(std::string_view name);

/// "20261129T211500Z-1a2b3c4d": time and a random part, so that runs can be told apart in one file.
std::string make_run_id();

}  // namespace belfry::bench
