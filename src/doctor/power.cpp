/// \file
/// What makes a CPU slow to answer: frequency governors and idle states.

#include <fmt/format.h>

#include <array>
#include <set>

#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

constexpr std::string_view kCpus = "/sys/devices/system/cpu";
/// Idle states that take longer to leave than a network round trip, microseconds.
constexpr std::int64_t kLongExit = 10;

constexpr std::array<Rule, 6> kRules = {{
    {"power.performance", Severity::ok, "every CPU's frequency governor is `performance`", "", ""},
    {"power.governor", Severity::warning, "CPUs have another frequency governor than `performance`",
     "polling threads run at a frequency that follows load: latencies wander from run to run",
     "`cpupower frequency-set -g performance`"},
    {"power.no_governor", Severity::unknown, "no frequency governor is visible",
     "common in virtual machines: the host decides", ""},
    {"power.shallow", Severity::ok, "idle states are left within 10 us", "", ""},
    {"power.deep", Severity::warning, "idle states that take longer than 10 us to leave are enabled",
     "a thread that sleeps, and a package that has gone idle, add this to the latency of what wakes them; "
     "packages in deep states answer PCIe reads later, too",
     "`cpupower idle-set -D 10` until the next boot"},
    {"power.no_idle_states", Severity::unknown, "no idle states are visible",
     "common in virtual machines: the host decides", ""},
}};

std::vector<std::string> cpu_folders(const Tree& tree) {
  std::vector<std::string> folders;
  for (const std::string& name : tree.list(kCpus)) {
    if (name.starts_with("cpu") && to_number(name.substr(3)))
      folders.push_back(std::string(kCpus) + "/" + name);
  }
  return folders;
}

void look_at_governors(Visit& visit, const std::vector<std::string>& cpus) {
  std::set<std::string> others;
  std::size_t known = 0;
  std::size_t slow = 0;
  for (const std::string& cpu : cpus) {
    const auto governor = visit.tree().line(cpu + "/cpufreq/scaling_governor");
    if (!governor) continue;
    ++known;
    if (*governor == "performance") continue;
    ++slow;
    others.insert(*governor);
  }
  if (known == 0) {
    visit.report(kRules[2], "CPUs", "no cpufreq/scaling_governor");
  } else if (slow == 0) {
    visit.report(kRules[0], "CPUs", fmt::format("{} CPUs", known));
  } else {
    visit.report(kRules[1], "CPUs", fmt::format("{} of {} CPUs: {}", slow, known, fmt::join(others, ", ")));
  }
}

void look_at_idle_states(Visit& visit, const std::vector<std::string>& cpus) {
  std::set<std::string> deep;
  std::size_t states = 0;
  std::int64_t longest = 0;
  for (const std::string& cpu : cpus) {
    for (const std::string& state : visit.tree().list(cpu + "/cpuidle")) {
      const std::string base = cpu + "/cpuidle/" + state;
      const auto latency = visit.tree().number(base + "/latency");
      if (!latency) continue;
      ++states;
      if (visit.tree().number(base + "/disable").value_or(0) != 0 || *latency <= kLongExit) continue;
      longest = std::max(longest, *latency);
      deep.insert(fmt::format("{} ({} us)", visit.tree().line(base + "/name").value_or(state), *latency));
    }
  }
  if (states == 0) {
    visit.report(kRules[5], "CPUs", "no cpuidle states");
  } else if (deep.empty()) {
    visit.report(kRules[3], "CPUs", "no enabled state is deeper");
  } else {
    visit.report(kRules[4], "CPUs", fmt::format("{}", fmt::join(deep, ", ")))
        .figures.push_back({"longest_exit_us", longest});
  }
}

void check_power(Visit& visit) {
  const std::vector<std::string> cpus = cpu_folders(visit.tree());
  look_at_governors(visit, cpus);
  look_at_idle_states(visit, cpus);
}

}  // namespace

extern const Check kPowerCheck{"power", "frequency governors and idle states of the CPUs", kRules,
                               check_power};

}  // namespace belfry::doctor
