#pragma once
/// \file
/// One execution: agents on coroutines over the checked memory, and a scheduler that owns every choice.
///
/// A store or a fence is made as soon as its agent comes to it: nobody is forced to see it, so no execution
/// is lost by that (docs/checker.md, "Exploration"). What reads waits until the scheduler picks its agent.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "belfry/port/lane.hpp"
#include "check/access.hpp"
#include "check/choice.hpp"
#include "check/coroutine.hpp"
#include "check/memory.hpp"
#include "check/property.hpp"
#include "check/trace.hpp"

namespace belfry::check {

/// A value that some agent stored to some bytes in an earlier execution: what a load may foresee.
struct Sighting {
  int writer = kNobody;
  std::size_t line = 0;
  std::uint16_t mask = 0;
  std::uint64_t value = 0;
  auto operator<=>(const Sighting&) const = default;
};

struct WorldSettings {
  Assumptions assumptions;
  /// Loads may be delayed past later stores (foresight). Off: each load is taken to be needed at once.
  bool load_delay = false;
  /// Where nobody can go on, the clock jumps and waits time out; off: that is a violation of waits_end.
  bool deadlines_pass = false;
  unsigned max_steps = 4000;
};

enum class Verdict {
  passed,
  violated,
  pruned,     ///< all that follows has been seen
  discarded,  ///< a foresight that did not come true, or not in a coherent way
  stopped,    ///< the chooser wanted no more
  certify,    ///< a foresight has to be certified first
};

class World {
 public:
  World(const WorldSettings& settings, Chooser& chooser);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // ---- what a scenario declares before run()

  /// `count` objects of shared memory, zeroed; the caller fills them before run(), as plain memory.
  template <class T>
  T* make(std::string name, std::size_t count, MemoryKind kind, int gpu = 0, unsigned granule = 8) {
    std::byte* const at = make_bytes(std::move(name), count * sizeof(T), kind, gpu, granule);
    if (sizeof(T) > 1) memory_.describe_region(at, sizeof(T), count, {});
    return reinterpret_cast<T*>(at);
  }
  /// How a trace shall name what lies in such memory.
  void describe_fields(const void* at, std::size_t stride, std::size_t count, std::vector<Field> fields) {
    memory_.describe_region(at, stride, count, std::move(fields));
  }
  int add_agent(std::string name, Place place, std::function<void()> body);
  /// One that need not end: a NIC.
  int add_daemon(std::string name, Place place, std::function<void()> body);
  /// Threads of one block, at most one warp: agents NAME.0, NAME.1, ...
  void add_block(const std::string& name, int gpu, int block, unsigned threads, std::function<void()> body);
  /// Another way of an agent into memory, with knowledge of its own: a NIC's responder.
  int add_port(std::string name, Place place);
  /// Runs once all agents have ended.
  void at_end(std::function<void()> check) { at_end_.push_back(std::move(check)); }
  /// Called at each store, before it is made.
  using StoreWatch =
      std::function<void(Observer&, const Where&, const void* at, unsigned bytes, std::uint64_t value)>;
  void watch_stores(StoreWatch watch) { watches_.push_back(std::move(watch)); }
  template <class T, class... Arguments>
  T& keep(Arguments&&... arguments) {
    auto made = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    kept_.push_back(made);
    return *made;
  }

  // ---- for agents

  /// The world of the agent that runs; throws Misuse where none does.
  static World& here();
  /// Makes an access as one of the agent's ports; `at_once` reads without giving anybody else a turn.
  struct As {
    int port = -1;  ///< -1: the agent's own
    bool at_once = false;
  };
  std::uint64_t load(const void* at, unsigned bytes, const Manner& how, bool waits, As as, const void* site);
  /// \param high of 16 B the last 8
  void store(void* at, unsigned bytes, std::uint64_t value, const Manner& how, As as, const void* site,
             std::uint64_t high = 0);
  /// The last 8 of the 16 B that the last load took.
  std::uint64_t last_high() const { return last_high_; }
  std::uint64_t modify(void* at, unsigned bytes, Modify what, const Manner& how, std::uint64_t operand,
                       std::uint64_t expected, As as, const void* site);
  void fence(Scope scope, bool sequential, const void* site);
  /// Whether the last load took the newest message there was.
  bool last_was_newest() const { return last_was_newest_; }
  /// Ends the execution with a violation. Does not return to an agent.
  void fail(Property property, std::string text);
  void require(bool holds, Property property, const std::string& text) {
    if (!holds) fail(property, text);
  }
  Observer& me();
  /// All that the agent will do depends on nothing that it has read but on these values: states that differ
  /// in what else it read are one from here on.
  void remember_only(std::initializer_list<std::uint64_t> values);
  bool agent_runs() const { return running_ != kNobody; }
  /// What everybody would see in the end: for checks at the end.
  std::uint64_t peek(const void* at, unsigned bytes) const;
  Memory& memory() { return memory_; }
  const WorldSettings& settings() const { return settings_; }
  std::uint64_t now_ns() const { return clock_jumped_ ? std::uint64_t{1} << 62 : 1; }

  // ---- for whoever explores

  Verdict run();
  const Violation& violation() const { return violation_; }
  const std::vector<Choice>& choices() const { return choices_; }
  unsigned steps() const { return steps_; }
  std::size_t foresight_at_hand() const { return foresight_at_hand_; }
  std::uint64_t emitted_by_reader() const;
  Trace trace;  ///< records where it is switched on
  /// Stores that were seen, for the loads of later executions to foresee.
  const std::vector<Sighting>* foreseeable = nullptr;
  std::vector<Sighting> sightings;
  /// [line] whether another agent than its reader has been seen to store there; elsewhere a load need not
  /// wait for its turn. Null: every one waits.
  const std::vector<bool>* contended = nullptr;
  /// [line] agents that stored to it, and agents that accessed it, one bit each.
  std::vector<std::uint64_t> writers, users;
  /// This foresight returns what it would have read, to find out whether its reader needed it.
  std::optional<std::size_t> lie;

 private:
  class Agent;
  friend class Agent;
  enum class What { load, modify, fence };
  struct Pending;
  struct Reading;

  std::byte* make_bytes(std::string name, std::size_t bytes, MemoryKind kind, int gpu, unsigned granule);
  int add(std::string name, Place place, bool daemon, std::function<void()> body);
  void wait_for_turn(Pending& pending);
  bool is_quiet(const Pending& pending) const;
  void begin_loop_turn(Agent& agent, const Pending& pending);
  void note_use(std::size_t line, const Agent& agent, bool writes);
  [[nodiscard]] unsigned choose(ChoiceKind kind, std::size_t count, bool free = false);
  void stop(Verdict verdict);
  bool stopped() const { return verdict_.has_value(); }

  void run_ready();
  void resume(Agent& agent);
  bool can_go_on(const Agent& agent) const;
  bool may_wait(const Agent& agent, const Pending& pending) const;
  bool waits_for_news(const Agent& agent) const;
  void nobody_can_go_on();
  void perform(Agent& agent);
  void perform_load(Agent& agent, Pending& p);
  void perform_modify(Agent& agent, Pending& p);
  void take_news(Agent& agent, const Pending& p, Observer& who);
  void note_read(Agent& agent, const Pending& p, const Observer& who, std::size_t message);
  std::vector<std::uint64_t> foreseeable_values(const Agent& agent, const Pending& p,
                                                const Observer& who) const;
  void try_fulfil(Agent& agent, const Where& where, std::uint64_t value, const Observer& who);
  void note_store(Agent& agent, const Where& where, const void* at, std::uint64_t value);
  std::uint64_t state() const;
  Agent& running() { return *agents_[static_cast<std::size_t>(running_)]; }

  WorldSettings settings_;
  Chooser& chooser_;
  Memory memory_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<std::function<void()>> at_end_;
  std::vector<StoreWatch> watches_;
  int running_ = kNobody;
  int last_ran_ = kNobody;
  bool last_was_newest_ = true;
  std::uint64_t last_high_ = 0;
  bool clock_jumped_ = false;
  unsigned idle_rounds_ = 0;
  unsigned steps_ = 0;
  std::uint64_t fence_hash_ = 0;
  std::vector<int> foresight_readers_;
  std::size_t foresight_at_hand_ = 0;
  std::vector<Choice> choices_;
  std::optional<Verdict> verdict_;
  Violation violation_;
  std::exception_ptr error_;
};

}  // namespace belfry::check
