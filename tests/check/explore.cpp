#include "check/explore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <tuple>
#include <unordered_map>

#include "check/hash.hpp"
#include "check/misuse.hpp"

namespace belfry::check {
namespace {

/// Of this process: a search is as long on a machine that does something else besides.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int cost(const Choice& choice) { return choice.taken != 0 && !choice.free ? 1 : 0; }

/// Follows the choices it was given, and then takes the usual ones, or stops, or rolls dice.
class Guide final : public Chooser {
 public:
  enum class Then { usual, stop, random };

  std::vector<Choice> path;
  Then then = Then::usual;
  std::size_t at = 0;
  bool diverged = false;
  Choice stopped_at;  ///< Then::stop: the choice that was not taken
  std::mt19937_64* dice = nullptr;
  std::function<bool(std::uint64_t, int)> enter_new;
  std::function<Certificate(const std::vector<Choice>&, std::size_t, std::uint64_t)> certify;

  std::optional<unsigned> choose(const Choice& choice) override {
    if (at < path.size()) {
      Choice& given = path[at++];
      if (given.count == 0) {  // from a schedule in words
        given.count = choice.count;
        given.kind = choice.kind;
        given.free = choice.free;
      }
      if (given.kind != choice.kind || given.count != choice.count || given.taken >= choice.count) {
        diverged = true;
        return std::nullopt;
      }
      return given.taken;
    }
    if (then == Then::stop) {
      stopped_at = choice;
      return std::nullopt;
    }
    Choice taken = choice;
    if (then == Then::random)
      taken.taken =
          static_cast<std::uint16_t>(std::uniform_int_distribution<unsigned>(0, choice.count - 1u)(*dice));
    path.push_back(taken);
    ++at;
    return taken.taken;
  }
  bool enter(std::uint64_t state, int running) override {
    return at < path.size() || !enter_new || enter_new(state, running);
  }
  Certificate certificate(const std::vector<Choice>& taken, std::size_t foresight,
                          std::uint64_t emitted) override {
    return certify ? certify(taken, foresight, emitted) : Certificate::granted;
  }
};

std::uint64_t path_hash(const std::vector<Choice>& path) {
  std::uint64_t hash = 1;
  for (const Choice& c : path) hash = mix(hash, static_cast<std::uint64_t>(c.count) << 16 | c.taken);
  return hash;
}

/// What the executions of one exploration share.
class Exploration {
 public:
  Exploration(const Scenario& scenario, const Limits& limits) : scenario_(scenario), limits_(limits) {}

  Report report;

  bool spent() {
    report.seconds = cpu_seconds() - start_;
    return report.executions >= limits_.executions || report.seconds >= limits_.seconds;
  }

  /// One execution; what it did is in the guide's path and in `choices`.
  Verdict execute(Guide& guide) {
    guide.certify = [this](const auto& taken, std::size_t foresight, std::uint64_t emitted) {
      return certificate_of(taken, foresight, emitted);
    };
    for (;;) {
      guide.at = 0;
      Verdict verdict;
      std::vector<bool> assumed = contended_;
      if (assumed.empty()) assumed.resize(1, false);
      if (scenario_.settings.load_delay) assumed.clear();
      {
        World world(scenario_.settings, guide);
        scenario_.build(world);
        world.foreseeable = &foreseeable_;
        if (!assumed.empty()) world.contended = &assumed;
        verdict = world.run();
        ++report.executions;
        steps = world.steps();
        choices = world.choices();
        for (const Sighting& s : world.sightings) seen_.insert(s);
        note_uses(world);
        if (verdict == Verdict::violated && !report.violated) {
          report.violated = true;
          report.finding = {world.violation(), {choices, assumed}, steps};
        }
        if (verdict == Verdict::certify) {
          asked_ = {choices, world.foresight_at_hand(), world.emitted_by_reader()};
        }
      }
      if (guide.diverged)
        throw Misuse("the scenario " + scenario_.name + " does not do the same thing twice");
      if (verdict == Verdict::passed) ++report.passed;
      if (verdict == Verdict::discarded) ++report.discarded;
      if (verdict != Verdict::certify) return verdict;
      grant_or_refuse();
      guide.path = asked_.choices;  // so far it has been; what it entered must not stop it now
    }
  }

  bool enter(std::uint64_t state, int running, int deviations_left) {
    if (limits_.deviations >= 0) state = mix(state, static_cast<std::uint64_t>(running + 1));
    const auto [at, is_new] = states_.try_emplace(state, deviations_left);
    if (is_new) {
      ++report.states;
      return true;
    }
    if (at->second >= deviations_left) return false;
    at->second = deviations_left;
    return true;
  }

  /// Whether an execution was made on the assumption that a line is quiet, and it was not: then all is begun
  /// anew. Each time the set of lines that are not quiet has grown, so this ends.
  bool begin_anew() {
    if (!found_noise_ || scenario_.settings.load_delay) return false;
    found_noise_ = false;
    states_.clear();
    return true;
  }

  /// Loads may foresee what was stored in the executions before: until nothing new comes up.
  bool learn() {
    if (seen_.size() == foreseeable_.size()) return false;
    foreseeable_.assign(seen_.begin(), seen_.end());
    states_.clear();
    return true;
  }

  const Limits& limits() const { return limits_; }
  unsigned steps = 0;
  std::vector<Choice> choices;

 private:
  using Key = std::tuple<std::uint64_t, std::size_t, std::uint64_t>;
  struct Asked {
    std::vector<Choice> choices;
    std::size_t foresight = 0;
    std::uint64_t emitted = 0;
  };

  void note_uses(const World& world) {
    const std::size_t lines = world.writers.size();
    if (contended_.size() < lines) {
      contended_.resize(lines, false);
      users_.resize(lines, 0);
      writers_.resize(lines, 0);
    }
    for (std::size_t i = 0; i < lines; ++i) {
      users_[i] |= world.users[i];
      writers_[i] |= world.writers[i];
      const bool several = (users_[i] & (users_[i] - 1)) != 0;
      if (writers_[i] == 0 || !several || contended_[i]) continue;
      contended_[i] = true;
      found_noise_ = true;
    }
  }

  Certificate certificate_of(const std::vector<Choice>& taken, std::size_t foresight,
                             std::uint64_t emitted) const {
    const auto found = certificates_.find(Key{path_hash(taken), foresight, emitted});
    return found == certificates_.end() ? Certificate::unknown : found->second;
  }

  /// The same execution, but the reader gets what it would have read without foresight: it must come to the
  /// same point by the same accesses, or what it did rests on itself, out of thin air.
  void grant_or_refuse() {
    Guide guide;
    guide.path = asked_.choices;
    guide.then = Guide::Then::stop;
    guide.certify = [this](const auto& taken, std::size_t foresight, std::uint64_t emitted) {
      return certificate_of(taken, foresight, emitted);
    };
    World world(scenario_.settings, guide);
    scenario_.build(world);
    world.foreseeable = &foreseeable_;
    world.lie = asked_.foresight;
    const Verdict verdict = world.run();
    const bool granted = !guide.diverged && verdict == Verdict::certify &&
                         world.foresight_at_hand() == asked_.foresight &&
                         world.emitted_by_reader() == asked_.emitted;
    certificates_[Key{path_hash(asked_.choices), asked_.foresight, asked_.emitted}] =
        granted ? Certificate::granted : Certificate::refused;
  }

  const Scenario& scenario_;
  const Limits limits_;
  const double start_ = cpu_seconds();
  std::unordered_map<std::uint64_t, int> states_;
  bool found_noise_ = false;
  std::vector<bool> contended_;
  std::vector<std::uint64_t> users_, writers_;
  std::vector<Sighting> foreseeable_;
  std::set<Sighting> seen_;
  std::map<Key, Certificate> certificates_;
  Asked asked_;
};

int deviations_of(const std::vector<Choice>& path) {
  int sum = 0;
  for (const Choice& c : path) sum += cost(c);
  return sum;
}

/// Depth first over one set of foreseeable values. \return whether it came to the end
bool depth_first(Exploration& exploration, Guide& guide) {
  const int most = exploration.limits().deviations;
  for (;;) {
    if (exploration.spent()) return false;
    guide.then = Guide::Then::usual;
    guide.enter_new = [&](std::uint64_t state, int running) {
      const int left = most < 0 ? 0 : most - deviations_of(guide.path);
      return exploration.enter(state, running, left);
    };
    exploration.execute(guide);
    if (exploration.report.violated) return false;
    if (exploration.begin_anew()) {
      guide.path.clear();
      continue;
    }
    // The next path: the last choice that has an answer left.
    guide.path = exploration.choices;
    for (;;) {
      if (guide.path.empty()) return true;
      Choice& last = guide.path.back();
      ++last.taken;
      if (last.taken < last.count && (most < 0 || deviations_of(guide.path) <= most)) break;
      guide.path.pop_back();
    }
  }
}

}  // namespace

Report explore(const Scenario& scenario, const Limits& limits) {
  Exploration exploration(scenario, limits);
  do {
    Guide guide;
    exploration.report.complete = depth_first(exploration, guide);
  } while (exploration.report.complete && scenario.settings.load_delay && exploration.learn());
  exploration.spent();
  return exploration.report;
}

Report explore_shortest(const Scenario& scenario, const Limits& limits) {
  Exploration exploration(scenario, limits);
  struct Node {
    unsigned steps;
    std::uint64_t number;  // of two as short the older one: the outcome is always the same
    std::vector<Choice> path;
    bool operator>(const Node& other) const {
      return std::tie(steps, number) > std::tie(other.steps, other.number);
    }
  };
  do {
    std::priority_queue<Node, std::vector<Node>, std::greater<>> open;
    std::uint64_t number = 0;
    open.push({0, number++, {}});
    exploration.report.complete = true;
    while (!open.empty() && !exploration.report.violated) {
      if (exploration.spent()) {
        exploration.report.complete = false;
        break;
      }
      Guide guide;
      guide.path = open.top().path;
      open.pop();
      guide.then = Guide::Then::stop;
      guide.enter_new = [&](std::uint64_t state, int running) {
        return exploration.enter(state, running, 0);
      };
      const Verdict verdict = exploration.execute(guide);
      if (exploration.begin_anew()) {
        open = {};
        open.push({0, number++, {}});
        continue;
      }
      if (verdict != Verdict::stopped) continue;
      for (unsigned taken = 0; taken < guide.stopped_at.count; ++taken) {
        std::vector<Choice> path = exploration.choices;
        path.push_back(guide.stopped_at);
        path.back().taken = static_cast<std::uint16_t>(taken);
        open.push({exploration.steps, number++, std::move(path)});
      }
    }
  } while (!exploration.report.violated && exploration.report.complete && scenario.settings.load_delay &&
           exploration.learn());
  exploration.spent();
  exploration.report.complete = exploration.report.complete && !exploration.report.violated;
  return exploration.report;
}

Report explore_random(const Scenario& scenario, std::uint64_t seed, const Limits& limits) {
  Exploration exploration(scenario, limits);
  std::mt19937_64 dice(seed);
  while (!exploration.spent() && !exploration.report.violated) {
    Guide guide;
    guide.then = Guide::Then::random;
    guide.dice = &dice;
    exploration.execute(guide);
  }
  return exploration.report;
}

std::string schedule_text(const Schedule& schedule) {
  std::string text;
  for (const Choice& c : schedule.choices) text += (text.empty() ? "" : ".") + std::to_string(c.taken);
  if (text.empty()) text = "-";
  if (schedule.contended.empty()) return text;
  char separator = '/';
  for (std::size_t line = 0; line < schedule.contended.size(); ++line) {
    if (!schedule.contended[line]) continue;
    text += separator + std::to_string(line);
    separator = '.';
  }
  return separator == '/' ? text + "/-" : text;
}

namespace {

std::vector<std::uint16_t> parse_numbers(const std::string& text) {
  std::vector<std::uint16_t> numbers;
  if (text == "-") return numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at <= end) {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc{} || (next != end && *next != '.'))
      throw Misuse("a schedule is numbers with dots in between, as a failing check prints it: '" + text +
                   "'");
    at = next + 1;
  }
  return numbers;
}

}  // namespace

Schedule parse_schedule(const std::string& text) {
  Schedule schedule;
  const auto slash = text.find('/');
  for (std::uint16_t taken : parse_numbers(text.substr(0, slash))) {
    schedule.choices.emplace_back();
    schedule.choices.back().taken = taken;
  }
  if (slash == std::string::npos) return schedule;
  schedule.contended.resize(1, false);
  for (std::uint16_t line : parse_numbers(text.substr(slash + 1))) {
    if (schedule.contended.size() <= line) schedule.contended.resize(line + 1u, false);
    schedule.contended[line] = true;
  }
  return schedule;
}

std::string replay(const Scenario& scenario, const Schedule& schedule) {
  Guide guide;
  guide.path = schedule.choices;
  World world(scenario.settings, guide);
  world.trace.on = true;
  scenario.build(world);
  if (!schedule.contended.empty()) world.contended = &schedule.contended;
  const Verdict verdict = world.run();
  std::string text = world.trace.text(world.memory());
  if (guide.diverged)
    return text + "The schedule does not fit this scenario: choice " + std::to_string(guide.at) + ".\n";
  if (verdict != Verdict::violated) return text + "No property was violated.\n";
  return text +
         fmt::format("VIOLATED {}: {}\n", property_name(world.violation().property), world.violation().text);
}

}  // namespace belfry::check
