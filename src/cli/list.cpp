/// \file
/// `belfry list`: what can be measured.

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/experiment.hpp"
#include "cli/commands.hpp"
#include "report/table.hpp"

namespace belfry::cli {
namespace {

using Json = nlohmann::ordered_json;

Json describe(const bench::Experiment& experiment) {
  Json entry = {{"name", experiment.name}, {"description", experiment.description}};
  entry["arms"] = Json::array();
  for (const auto& arm : experiment.arms) {
    entry["arms"].push_back(
        {{"name", arm.name}, {"description", arm.description}, {"reference", arm.reference}});
  }
  entry["metrics"] = Json::array();
  for (const auto& metric : experiment.metrics) {
    entry["metrics"].push_back(
        {{"name", metric.name}, {"unit", metric.unit}, {"description", metric.description}});
  }
  entry["parameters"] = Json::array();
  for (const auto& parameter : experiment.parameters) {
    entry["parameters"].push_back({{"name", parameter.name},
                                   {"default", parameter.initial},
                                   {"least", parameter.least},
                                   {"most", parameter.most},
                                   {"description", parameter.description}});
    if (!parameter.choices.empty()) entry["parameters"].back()["choices"] = parameter.choices;
  }
  entry["passes"] = experiment.passes;
  entry["iterations"] = experiment.iterations;
  entry["processes"] = experiment.most_processes;
  return entry;
}

void list_json() {
  Json all = Json::array();
  for (const auto& experiment : bench::experiments()) all.push_back(describe(experiment));
  std::printf("%s\n", Json{{"experiments", all}}.dump(2).c_str());
}

std::string value_text(const bench::ParameterInfo& parameter, std::int64_t value) {
  if (parameter.choices.empty()) return std::to_string(value);
  return parameter.choices[static_cast<std::size_t>(value)];
}

/// "1..64", "thread|warp"
std::string range_text(const bench::ParameterInfo& parameter) {
  if (parameter.choices.empty())
    return std::to_string(parameter.least) + ".." + std::to_string(parameter.most);
  std::string text;
  for (const std::string& name : parameter.choices) text += (text.empty() ? "" : "|") + name;
  return text;
}

void list_text() {
  report::Table table({{"experiment"}, {"what"}, {"name"}, {"unit or range"}, {"description"}});
  for (const auto& experiment : bench::experiments()) {
    table.add({experiment.name, "", "", "", experiment.description});
    for (const auto& arm : experiment.arms) table.add({"", "arm", arm.name, "", arm.description});
    for (const auto& metric : experiment.metrics) {
      table.add({"", "metric", metric.name, metric.unit, metric.description});
    }
    for (const auto& parameter : experiment.parameters) {
      table.add({"", "parameter", "--" + parameter.name, range_text(parameter),
                 parameter.description + " (default " + value_text(parameter, parameter.initial) + ")"});
    }
  }
  std::printf("%s", table.text().c_str());
}

}  // namespace

void add_list(CLI::App& app) {
  CLI::App* list = app.add_subcommand("list", "Experiments, their arms, metrics and parameters");
  const auto json = std::make_shared<bool>(false);
  list->add_flag("--json", *json, "As one JSON object");
  list->callback([json] {
    if (*json) {
      list_json();
    } else {
      list_text();
    }
  });
}

}  // namespace belfry::cli
