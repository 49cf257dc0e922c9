#pragma once
/// \file
/// Runs a scenario in every way there is, or in many.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check/world.hpp"

namespace belfry::check {

struct Scenario {
  std::string name;
  WorldSettings settings;
  std::function<void(World&)> build;
};

struct Limits {
  std::uint64_t executions = 5'000'000;
  double seconds = 60;  ///< of this process, on a core
  /// Unusual choices an execution may take: an agent taken off while it could go on, a read of something old,
  /// a store out of order. Below 0: any number.
  int deviations = -1;
};

/// What it takes to run an execution again: its choices, and which lines were held to be contended, for that
/// decides where there is a choice.
struct Schedule {
  std::vector<Choice> choices;
  std::vector<bool> contended;  ///< [line]; empty: all
};

struct Finding {
  Violation violation;
  Schedule schedule;
  unsigned steps = 0;
};

struct Report {
  bool complete = false;  ///< every execution (within the deviations allowed) has been seen
  bool violated = false;
  Finding finding;  ///< the first one
  std::uint64_t executions = 0;
  std::uint64_t states = 0;
  std::uint64_t passed = 0;     ///< executions that came to their end
  std::uint64_t discarded = 0;  ///< delayed loads that came to nothing
  double seconds = 0;
};

/// Depth first, all of it.
Report explore(const Scenario& scenario, const Limits& limits = {});
/// All of it, the shortest first: what it finds is a violation of the fewest steps.
Report explore_shortest(const Scenario& scenario, const Limits& limits = {});
/// Random choices, from one seed.
Report explore_random(const Scenario& scenario, std::uint64_t seed, const Limits& limits);

/// Runs one schedule again. \return the trace and how it ended, for people
std::string replay(const Scenario& scenario, const Schedule& schedule);
/// "0.2.1/4.7": what was taken, choice by choice, and the contended lines.
std::string schedule_text(const Schedule& schedule);
/// \throws Misuse for what is not a schedule
Schedule parse_schedule(const std::string& text);

}  // namespace belfry::check
