#include "bench/experiment.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <random>
#include <stdexcept>

namespace belfry::bench {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string join(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

std::vector<std::string> choose_arms(const Experiment& experiment, const std::vector<std::string>& wanted) {
  std::vector<std::string> known;
  for (const ArmInfo& arm : experiment.arms) known.push_back(arm.name);
  for (const std::string& arm : wanted) {
    if (std::find(known.begin(), known.end(), arm) == known.end()) {
      throw std::invalid_argument("experiment " + experiment.name + " has no arm '" + arm + "'; it has " +
                                  join(known));
    }
  }
  if (wanted.empty()) return known;
  std::vector<std::string> chosen;
  for (const std::string& arm : known) {
    if (std::find(wanted.begin(), wanted.end(), arm) != wanted.end()) chosen.push_back(arm);
  }
  return chosen;
}

}  // namespace

void Progress::say(const std::string& line) const {
  if (shown_) std::fprintf(stderr, "belfry: %s\n", line.c_str());
}

std::string make_run_id() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char when[32];
  std::strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
  char id[48];
  std::snprintf(id, sizeof id, "%s-%08x", when, std::random_device{}());
  return id;
}

const Experiment* find_experiment(std::string_view name) {
  for (const Experiment& experiment : experiments()) {
    if (experiment.name == name) return &experiment;
  }
  return nullptr;
}

RunContext::RunContext(const Experiment& experiment, Options options, Progress progress)
    : experiment_(experiment),
      options_(std::move(options)),
      progress_(progress),
      arms_(choose_arms(experiment, options_.arms)),
      versions_(capture_versions()),
      id_(make_run_id()) {
  use_nic({});
}

unsigned RunContext::passes() const {
  if (options_.passes != 0) return options_.passes;
  return options_.quick ? experiment_.quick_passes : experiment_.passes;
}

std::uint64_t RunContext::iterations() const {
  if (options_.iterations != 0) return options_.iterations;
  return options_.quick ? experiment_.quick_iterations : experiment_.iterations;
}

const ParameterInfo& RunContext::parameter_info(std::string_view name) const {
  for (const ParameterInfo& parameter : experiment_.parameters) {
    if (parameter.name == name) return parameter;
  }
  throw std::out_of_range("experiment " + experiment_.name + " has no parameter '" + std::string(name) + "'");
}

std::int64_t RunContext::parameter(std::string_view name) const {
  if (const Value* value = find(options_.parameters, name)) {
    if (const auto* number = std::get_if<std::int64_t>(value)) return *number;
  }
  return parameter_info(name).initial;
}

bool RunContext::is_changed(std::string_view name) const {
  return parameter(name) != parameter_info(name).initial;
}

Value RunContext::parameter_value(std::string_view name) const {
  const std::int64_t number = parameter(name);
  const auto& choices = parameter_info(name).choices;
  if (choices.empty()) return number;
  return choices.at(static_cast<std::size_t>(number));
}

bool wants_arm(const RunContext& run, const std::string& arm) {
  const auto& named = run.options().arms;
  if (std::find(named.begin(), named.end(), arm) != named.end()) return true;
  const auto& parameters = run.experiment().parameters;
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const ParameterInfo& info) { return run.is_changed(info.name); });
}

void RunContext::use_nic(const NicDescription& nic) {
  nic_ = nic;
  platform_ = capture_platform("/", nic);
}

Record RunContext::record(const std::string& arm, const std::string& metric) const {
  Record record;
  record.run = id_;
  record.experiment = experiment_.name;
  record.arm = arm;
  record.platform = platform_;
  record.nic = nic_.kind;
  record.source = Source::measured;
  record.metric = metric;
  for (const MetricInfo& known : experiment_.metrics) {
    if (known.name == metric) record.unit = known.unit;
  }
  if (record.unit.empty()) {
    throw std::invalid_argument("experiment " + experiment_.name + " has no metric '" + metric + "'");
  }
  for (const ArmInfo& known : experiment_.arms) {
    if (known.name == arm) record.reference = known.reference;
  }
  for (const ParameterInfo& known : experiment_.parameters) {
    set(record.parameters, known.name, parameter_value(known.name));
  }
  set(record.parameters, "passes", std::int64_t{passes()});
  set(record.parameters, "iterations", static_cast<std::int64_t>(iterations()));
  set(record.parameters, "processes", std::int64_t{options_.processes});
  set(record.parameters, "seed", static_cast<std::int64_t>(options_.seed));
  if (options_.lanes != "cpu") {
    set(record.parameters, "lanes", options_.lanes);
    set(record.parameters, "gpus", join(options_.gpus));
    const EngineSettings& engine = options_.engine;
    if (engine.gpu) set(record.parameters, "engine_gpu", std::int64_t{*engine.gpu});
    set(record.parameters, "nic_polls", std::string(engine.polls_records ? "record" : "doorbell"));
    if (engine.doorbells_on_gpu) set(record.parameters, "nic_doorbells", std::string("gpu"));
    set(record.parameters, "nic_writes", std::string(engine.unordered_writes ? "unordered" : "ordered"));
  }
  if (options_.send_queue_place != "gpu")
    set(record.parameters, "send_queue_place", options_.send_queue_place);
  if (!options_.completions_place.empty())
    set(record.parameters, "completions_place", options_.completions_place);
  if (!options_.record_place.empty()) set(record.parameters, "record_place", options_.record_place);
  if (options_.window_place != "host") set(record.parameters, "window", options_.window_place);
  if (options_.counters_place != "host") set(record.parameters, "counters", options_.counters_place);
  if (options_.quick) set(record.parameters, "quick", true);
  record.versions = versions_;
  return record;
}

Record RunContext::record(const std::string& arm, const std::string& metric, const PassSeries& series) const {
  Record filled = record(arm, metric);
  series.fill(filled);
  return filled;
}

void RunContext::interleave(const std::function<void(const std::string&, unsigned)>& measure) const {
  std::mt19937_64 random(options_.seed);
  std::vector<std::size_t> order(arms_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (unsigned pass = 0; pass < passes(); ++pass) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      progress_.say("pass " + std::to_string(pass + 1) + " of " + std::to_string(passes()) + ", " + arms_[i]);
      measure(arms_[i], pass);
    }
  }
}

}  // namespace belfry::bench
