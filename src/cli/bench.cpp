/// \file
/// `belfry bench EXPERIMENT`: runs one experiment, prints its records as text, writes them where asked.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "belfry/host/environment.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/tcp_bootstrap.hpp"
#include "bench/experiment.hpp"
#include "bench/published.hpp"
#include "bench/record_sink.hpp"
#include "cli/bench_nic.hpp"
#include "cli/commands.hpp"
#include "report/run_report.hpp"

namespace belfry::cli {
namespace {

/// What the command line said, for one experiment.
struct Request {
  const bench::Experiment* experiment = nullptr;
  bench::Options options;
  std::vector<std::int64_t> parameters;  ///< in the experiment's order
  std::string json;
  std::string csv;
  bool progress = false;
  std::string peer_of;  ///< HOST:PORT: this process is the other one of --processes 2
};

void add_common_options(CLI::App& command, Request& request) {
  bench::Options& options = request.options;
  const bench::Experiment& experiment = *request.experiment;
  command.add_option("--json", request.json, "Write the records as JSON lines to FILE; - is stdout")
      ->type_name("FILE");
  command.add_option("--csv", request.csv, "Write the records as CSV to FILE; - is stdout")
      ->type_name("FILE");
  command
      .add_option("--passes", options.passes,
                  "Passes over all arms (default " + std::to_string(experiment.passes) + ")")
      ->check(CLI::Range(1, 1000));
  command
      .add_option("--iterations", options.iterations,
                  "Operations an arm and pass (default " + std::to_string(experiment.iterations) + ")")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000000}));
  command.add_flag("--quick", options.quick,
                   "Few passes and iterations: shows that it works, measures little");
  command.add_option("--nic", options.nic, "auto, soft (the software NIC), NAME or NAME:PORT [BELFRY_NIC]")
      ->type_name("NIC");
  command.add_option("--processes", options.processes, "Ends in one process (1), or in two (2)")
      ->check(CLI::Range(1u, experiment.most_processes));
  std::vector<std::string> arms;
  for (const auto& arm : experiment.arms) arms.push_back(arm.name);
  command.add_option("--arms", options.arms, "These arms only, separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(arms));
  if (experiment.runs_on_gpu) {
    command.add_option("--lanes", options.lanes, "What runs the kernels: cpu (threads), or cuda (a GPU)")
        ->check(CLI::IsMember({"cpu", "cuda"}));
    command
        .add_option("--gpus", options.gpus,
                    "With --lanes cuda, GPUs by CUDA's numbers, separated by commas: kernels and memory of "
                    "rank r are on the one at r modulo their count (default 0)")
        ->type_name("N[,N...]")
        ->delimiter(',')
        ->check(CLI::Range(0, 63));
    const auto add_place = [&command](const char* name, std::string& place, const char* what) {
      command.add_option(name, place, what)->check(CLI::IsMember({"gpu", "host"}));
    };
    add_place("--send-queue", options.send_queue_place,
              "With --lanes cuda, where mini-gda's send queues lie: gpu or host (default gpu)");
    add_place("--completions", options.completions_place,
              "With --lanes cuda, where its completion queues lie (default: where send queues do)");
    add_place("--record", options.record_place,
              "With --lanes cuda, where its doorbell records lie (default: where send queues do)");
    add_place("--window", options.window_place,
              "With --lanes cuda, where windows lie of mini-proxy, and of mini-gda with --send-queue host: "
              "host or gpu (default host)");
    add_place("--counters", options.counters_place,
              "With --lanes cuda, where mini-proxy's completions are counted: host or gpu");
  }
  command.add_option("--seed", options.seed, "Seed of the order of arms and of the payload")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{INT64_MAX}));
  command.add_flag("--progress", request.progress, "Say on stderr what is being measured, terminal or not");
  // An empty group hides an option from --help: these two are for the process that --processes 2 starts.
  command.add_option("--peer-of", request.peer_of)->group("");
  command.add_option("--softnic-fabric", options.fabric)->group("");
}

/// A parameter that is one of several names.
void add_choice(CLI::App& command, const bench::ParameterInfo& info, std::int64_t& value) {
  std::string names;
  for (const std::string& name : info.choices) names += (names.empty() ? "" : ", ") + name;
  const std::string& initial = info.choices[static_cast<std::size_t>(info.initial)];
  // Through a function, for CLI11's own transformers would take any of the numbers too.
  command
      .add_option_function<std::string>(
          "--" + info.name,
          [&value, &info](const std::string& name) {
            value = std::find(info.choices.begin(), info.choices.end(), name) - info.choices.begin();
          },
          info.description + ": " + names + " (default " + initial + ")")
      ->check(CLI::IsMember(info.choices));
}

void add_own_parameters(CLI::App& command, Request& request) {
  const auto& infos = request.experiment->parameters;
  request.parameters.reserve(infos.size());
  for (const bench::ParameterInfo& info : infos) {
    std::int64_t& value = request.parameters.emplace_back(info.initial);
    if (!info.choices.empty()) {
      add_choice(command, info, value);
      continue;
    }
    command
        .add_option("--" + info.name, value,
                    info.description + " (default " + std::to_string(info.initial) + ")")
        ->check(CLI::Range(info.least, info.most));
  }
}

bench::Options complete_options(const Request& request) {
  bench::Options options = request.options;
  for (std::size_t i = 0; i < request.parameters.size(); ++i) {
    bench::set(options.parameters, request.experiment->parameters[i].name, request.parameters[i]);
  }
  return options;
}

bool failed_to_verify(const std::vector<bench::Record>& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const auto& record) { return record.verified == false; });
}

/// The text goes to stdout, unless records go there.
void print_report(const Request& request, const bench::RunContext& run,
                  const std::vector<bench::Record>& records) {
  std::FILE* out = request.json == "-" || request.csv == "-" ? stderr : stdout;
  const auto& published = bench::published_records();
  const std::string title =
      "belfry bench " + request.experiment->name + ": " + request.experiment->description;
  std::fprintf(out, "%s\n%s", report::header_text(title, records, run.notes()).c_str(),
               report::measured_table(records, published).c_str());
  const std::string beside = report::published_table(request.experiment->name, published);
  if (!beside.empty()) std::fprintf(out, "\n%s", beside.c_str());
  if (failed_to_verify(records)) {
    std::fprintf(stderr,
                 "belfry: a payload did not verify: see the rows marked NO; their figures are worthless\n");
  }
}

/// Ranks of a launcher that take part: two where the experiment can use them.
int ranks_used(const bench::Experiment& experiment) { return experiment.most_processes >= 2 ? 2 : 1; }

/// What a launcher's ranks do, for the help.
std::string ranks_text(const bench::Experiment& experiment) {
  if (ranks_used(experiment) == 1)
    return "All ends are in one process: of a launcher's ranks (belfry launch, mpirun, srun, torchrun) rank "
           "0 "
           "measures, and the others end at once.";
  return "Between two ends: both in this process, in two (--processes 2), or ranks 0 and 1 of a launcher "
         "(belfry "
         "launch, mpirun, srun, torchrun). It takes one pair, as osu_latency does: a second one beside it "
         "would "
         "change what is measured. Further ranks end at once, and rank 0 says so.";
}

/// The same of a run that was started with more.
std::string unused_ranks_text(const bench::Experiment& experiment, int ranks) {
  const int used = ranks_used(experiment);
  return std::to_string(ranks) + " ranks were started, of which this experiment uses " +
         std::to_string(used) +
         (used == 2
              ? ": it measures between two ends, ranks 0 and 1. The others have ended, and measured nothing"
              : ": all its ends are in rank 0. The others have ended, and measured nothing");
}

void measure(const Request& request) {
  std::optional<bench::RecordSink> json;
  std::optional<bench::RecordSink> csv;
  if (!request.json.empty()) json.emplace(request.json, bench::RecordFormat::json_lines);
  if (!request.csv.empty()) csv.emplace(request.csv, bench::RecordFormat::csv);
  bench::RunContext run(*request.experiment, complete_options(request),
                        bench::Progress(request.progress || isatty(STDERR_FILENO) == 1));
  if (const int ranks = host::Environment::of_this_process().bootstrap_size.value_or(1);
      ranks > ranks_used(*request.experiment)) {
    run.note(unused_ranks_text(*request.experiment, ranks));
  }
  const std::vector<bench::Record> records = request.experiment->run(run);
  if (records.empty())
    throw std::runtime_error("experiment " + request.experiment->name + " returned no record");
  if (json) json->write(records);
  if (csv) csv->write(records);
  print_report(request, run, records);
  if (failed_to_verify(records)) throw CLI::RuntimeError(kExitFailed);
}

/// Where a launcher (belfry launch, mpirun, srun, torchrun) has started this as one of several ranks: rank 0
/// measures, rank 1 is the other process of an experiment that knows two, and nobody else has anything to do.
/// \return whether this rank takes part
bool join_launched(Request& request, const host::Environment& environment) {
  const int size = environment.bootstrap_size.value_or(1);
  if (size < 2 || !environment.bootstrap_rank || !request.peer_of.empty()) return true;
  const int used = ranks_used(*request.experiment);
  const int rank = *environment.bootstrap_rank;
  if (rank >= used) return false;
  if (used == 1) return true;
  if (!environment.bootstrap_address) {
    throw host::Error(host::ErrorKind::bad_argument,
                      environment.launcher + " has started " + std::to_string(size) +
                          " ranks and does not tell where rank 0 is",
                      "Set BELFRY_BOOTSTRAP_ADDRESS=HOST:PORT, of rank 0, for all of them");
  }
  request.options.processes = 2;
  (rank == 0 ? request.options.listen_at : request.peer_of) = *environment.bootstrap_address;
  return true;
}

/// What the ranks of one launch have in common and others have not: the port of rank 0.
std::string launch_of(const host::Environment& environment) {
  if (environment.bootstrap_size.value_or(1) < 2 || !environment.bootstrap_address) return "";
  return host::TcpAddress::parse(*environment.bootstrap_address).port;
}

/// Whether the user has said where memory is to lie.
bool places_memory(const bench::Options& o) {
  return o.send_queue_place != "gpu" || !o.completions_place.empty() || !o.record_place.empty() ||
         o.window_place != "host" || o.counters_place != "host";
}

void run_request(Request& request) {
  if (request.json == "-" && request.csv == "-") {
    throw CLI::ValidationError("--json and --csv cannot both go to stdout");
  }
  const host::Environment environment = host::Environment::of_this_process();
  if (!join_launched(request, environment)) return;
  if (request.options.lanes == "cuda" && request.options.processes > 1) {
    throw CLI::ValidationError(
        "--lanes cuda",
        "two processes would take turns on the GPU and wait for each other: run both ends in one process, "
        "without --processes 2 and without a launcher");
  }
  if (request.options.lanes != "cuda" && request.options.gpus != std::vector<int>{0})
    throw CLI::ValidationError("--gpus", "GPUs run kernels with --lanes cuda only");
  if (request.options.lanes != "cuda" && places_memory(request.options)) {
    throw CLI::ValidationError("--send-queue, --completions, --record, --window, --counters",
                               "on CPU lanes all of it is the host's memory: add --lanes cuda");
  }
  // A kernel's first launch would wait for kernels that wait for it. CUDA reads this when it starts.
  if (request.options.lanes == "cuda") {
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    for (const auto& [name, value] : request.experiment->gpu_environment)
      setenv(name.c_str(), value.c_str(), 0);
  }
  choose_nic(*request.experiment, request.options, launch_of(environment));
  if (request.peer_of.empty()) {
    measure(request);
    return;
  }
  bench::RunContext run(*request.experiment, complete_options(request), bench::Progress(false));
  request.experiment->peer(run, request.peer_of);
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Run one experiment (see `belfry list`)");
  command->require_subcommand(1);
  for (const bench::Experiment& experiment : bench::experiments()) {
    const auto request = std::make_shared<Request>();
    request->experiment = &experiment;
    CLI::App* own =
        command->add_subcommand(experiment.name, experiment.description + "\n\n" + ranks_text(experiment));
    add_common_options(*own, *request);
    add_own_parameters(*own, *request);
    own->callback([request] { run_request(*request); });
  }
}

}  // namespace belfry::cli
