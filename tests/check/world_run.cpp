#include <algorithm>
#include <utility>

#include "check/agent.hpp"
#include "check/hash.hpp"
#include "check/misuse.hpp"

// The scheduler of a World.

namespace belfry::check {

World*& active_world();

namespace {

/// Turns that everybody gets once nobody has news, before it is called a wait without an end. Two: a loop may
/// have been at its second look at something that it was content with.
constexpr unsigned kIdleRounds = 2;
/// The same once the clock has jumped: a waiting loop looks at it once in 16 turns.
constexpr unsigned kIdleRoundsAfterJump = 40;

}  // namespace

Verdict World::run() {
  memory_.freeze();
  World* before = std::exchange(active_world(), this);
  struct Restore {
    World* to;
    ~Restore() { active_world() = to; }
  } restore{before};
  while (!stopped()) {
    run_ready();
    if (stopped()) break;
    if (steps_ > settings_.max_steps) {
      fail(Property::waits_end, "still running after " + std::to_string(steps_) +
                                    " steps: a loop that waits without port::poll(), or one that never ends");
      break;
    }
    std::vector<Agent*> able;
    if (last_ran_ != kNobody && can_go_on(*agents_[static_cast<std::size_t>(last_ran_)]))
      able.push_back(agents_[static_cast<std::size_t>(last_ran_)].get());
    const bool forced = able.empty();
    for (auto& agent : agents_)
      if (agent->index != last_ran_ && can_go_on(*agent)) able.push_back(agent.get());
    if (able.empty()) {
      nobody_can_go_on();
      continue;
    }
    if (!chooser_.enter(state(), last_ran_)) {
      stop(Verdict::pruned);
      break;
    }
    const unsigned taken = choose(ChoiceKind::agent, able.size(), forced);
    if (stopped()) break;
    perform(*able[taken]);
    if (!stopped()) resume(*able[taken]);
  }
  if (error_) std::rethrow_exception(error_);
  return *verdict_;
}

void World::resume(Agent& agent) {
  last_ran_ = running_ = agent.index;
  port::CpuLane* const before =
      std::exchange(port::current_lane(), agent.place.kind == AgentKind::gpu ? &agent : nullptr);
  agent.coroutine->resume();
  port::current_lane() = before;
  running_ = kNobody;
  if (error_) stop(Verdict::stopped);
}

/// Agents whose barrier is over go on before anybody chooses.
void World::run_ready() {
  for (bool again = true; again && !stopped();) {
    again = false;
    for (auto& agent : agents_) {
      if (stopped()) return;
      if (agent->coroutine->ended() || agent->pending != nullptr || agent->meeting.waits) continue;
      resume(*agent);
      again = true;
    }
  }
}

std::uint64_t World::state() const {
  std::uint64_t hash = mix(memory_.hash(), fence_hash_);
  for (const auto& agent : agents_) hash = mix(hash, agent->chain);
  for (const Foresight& f : memory_.foresights())
    hash = mix(mix(hash, static_cast<std::uint64_t>(f.reader)), mix(f.where.line, f.value) + (f.stamp != 0));
  return hash;
}

// ---------------------------------------------------------------- waiting

/// Whether this can be the turn of a loop that waits: a poll, or a compare-exchange. Not one that expects
/// what it has found itself, for which nothing has to change any more.
bool World::may_wait(const Agent& agent, const Pending& p) const {
  if (p.waits || p.what != What::modify || p.modify != Modify::compare_exchange) return p.waits;
  const auto& readings = agent.readings;
  const auto last = std::find_if(readings.rbegin(), readings.rend(),
                                 [&](const Reading& r) { return r.site == p.site && r.at == p.at; });
  return last == readings.rend() || last->value != p.expected;
}

/// Whether the agent asks again what it has asked before, with nothing but reads in between, and none of the
/// answers since then could be another one now.
bool World::waits_for_news(const Agent& agent) const {
  const Pending& p = *agent.pending;
  if (!may_wait(agent, p)) return false;
  const auto& readings = agent.readings;
  for (std::size_t i = readings.size(); i-- > 0;) {
    if (readings[i].site != p.site || readings[i].at != p.at) continue;
    for (; i < readings.size(); ++i) {
      const Line& line = memory_.line(readings[i].where);
      if (line.order[memory_.newest(readings[i].where)].stamp > readings[i].stamp) return false;
    }
    return true;
  }
  return false;
}

bool World::can_go_on(const Agent& agent) const {
  if (agent.coroutine->ended() || agent.pending == nullptr) return false;
  const Pending& p = *agent.pending;
  if (p.what == What::fence) return true;
  const int port = p.as.port < 0 ? agent.observer : p.as.port;
  if (memory_.awaits_foresight(memory_.observer(port), p.where)) return false;
  return agent.free_turn || !waits_for_news(agent);
}

/// A loop goes on because something it looks at has changed: it has waited past the old state of that.
void World::take_news(Agent& agent, const Pending& p, Observer& who) {
  const auto& readings = agent.readings;
  std::size_t first = readings.size();
  while (first > 0 && (readings[first - 1].site != p.site || readings[first - 1].at != p.at)) --first;
  if (first == 0) return;
  std::vector<const Reading*> changed;
  for (std::size_t i = first - 1; i < readings.size(); ++i) {
    const Line& line = memory_.line(readings[i].where);
    if (line.order[memory_.newest(readings[i].where)].stamp > readings[i].stamp)
      changed.push_back(&readings[i]);
  }
  if (!changed.empty()) {
    const unsigned taken = choose(ChoiceKind::news, changed.size());
    if (stopped()) return;
    agent.chain = mix(agent.chain, 0x40 + taken);
    const Reading& r = *changed[taken];
    const Line& line = memory_.line(r.where);
    Observer& reader = r.port == who.id ? who : memory_.observer(r.port);
    for (const Message& m : line.order) {
      if ((m.mask & r.where.mask) == 0 || m.stamp <= r.stamp) continue;
      for (unsigned c = 0; c < r.where.cells; ++c) reader.floor.raise(r.where.first_cell + c, m.stamp);
      break;
    }
  }
}

void World::nobody_can_go_on() {
  const bool all_ended = std::all_of(agents_.begin(), agents_.end(), [](const auto& agent) {
    return agent->daemon || agent->coroutine->ended();
  });
  if (memory_.foresight_open()) return stop(Verdict::discarded);
  if (all_ended) {
    running_ = kNobody;
    for (const auto& check : at_end_) {
      check();
      if (stopped()) return;
    }
    return stop(Verdict::passed);
  }
  if (++idle_rounds_ > (clock_jumped_ ? kIdleRoundsAfterJump : kIdleRounds)) {
    if (settings_.deadlines_pass && !clock_jumped_) {
      clock_jumped_ = true;
      idle_rounds_ = 0;
      return;
    }
    std::string text = "nothing that it waits for can change any more:";
    for (const auto& agent : agents_) {
      if (agent->coroutine->ended() || agent->daemon) continue;
      text += "\n    " + agent->name;
      text += agent->pending != nullptr ? " at " + source_line(agent->pending->site) : " at a barrier";
    }
    return fail(Property::waits_end, text);
  }
  for (auto& agent : agents_) {
    if (agent->coroutine->ended() || agent->pending == nullptr) continue;
    agent->free_turn = true;
    const unsigned rounds = idle_rounds_;
    perform(*agent);
    agent->free_turn = false;
    if (!stopped()) resume(*agent);
    if (stopped() || idle_rounds_ < rounds) return;
  }
}

// ---------------------------------------------------------------- performing

void World::perform(Agent& agent) {
  Pending& p = *agent.pending;
  memory_.step = ++steps_;
  if (p.what == What::fence) {
    Observer& who = memory_.observer(agent.observer);
    memory_.fence_sequential(who, p.how.scope);
    agent.chain = mix(agent.chain, fence_hash_);
    agent.emitted = mix(agent.emitted, 0xf5 + static_cast<unsigned>(p.how.scope));
    fence_hash_ = mix(fence_hash_, agent.chain + static_cast<unsigned>(p.how.scope));
    if (trace.on) {
      Event e;
      e.kind = EventKind::fence_sequential;
      e.step = steps_;
      e.observer = who.id;
      e.site = p.site;
      e.callers = p.callers;
      e.how = p.how;
      trace.add(std::move(e));
    }
  } else if (p.what == What::load) {
    perform_load(agent, p);
  } else {
    perform_modify(agent, p);
  }
  agent.pending = nullptr;
  if (trace.on) trace.look(memory_, steps_);
}

void World::note_read(Agent& agent, const Pending& p, const Observer& who, std::size_t message) {
  const Message& m = memory_.line(p.where).order[message];
  const std::size_t newest = memory_.newest(p.where);
  last_was_newest_ = message == newest;
  const bool seen = std::any_of(agent.readings.begin(), agent.readings.end(), [&](const Reading& r) {
    return r.at == p.at && r.site == p.site && r.stamp == m.stamp;
  });
  if (!seen) idle_rounds_ = 0;
  const std::uint64_t read = mix(mix(mix(0, p.where.line << 16 | p.where.mask), p.result ^ p.result_high),
                                 m.hash + static_cast<std::uint64_t>(m.stamp));
  agent.readings.push_back({p.site, p.at, p.where, who.id, m.stamp, read, p.result});
  agent.chain = mix(agent.chain, read);
  agent.emitted = mix(mix(agent.emitted, p.where.line), p.where.mask);
  if (!trace.on) return;
  Event e;
  e.kind = p.what == What::load ? EventKind::load : EventKind::modify;
  e.step = steps_;
  e.observer = who.id;
  e.site = p.site;
  e.callers = p.callers;
  e.where = p.where;
  e.place = describe(memory_, p.at);
  e.how = p.how;
  e.value = p.result;
  e.from = m.step;
  e.missed = last_was_newest_ ? 0 : memory_.line(p.where).order[newest].step;
  trace.add(std::move(e));
}

/// Values that others have been seen to store here, and that are not here yet.
std::vector<std::uint64_t> World::foreseeable_values(const Agent& agent, const Pending& p,
                                                     const Observer& who) const {
  std::vector<std::uint64_t> values;
  if (!settings_.load_delay || foreseeable == nullptr || p.waits || p.as.at_once || p.where.bytes > 8 ||
      !memory_.may_foresee())
    return values;
  const auto readable = memory_.readable(who, p.where);
  for (const Sighting& s : *foreseeable) {
    if (s.writer == agent.index || s.line != p.where.line || s.mask != p.where.mask) continue;
    const bool there = std::any_of(readable.begin(), readable.end(),
                                   [&](std::size_t m) { return memory_.value_at(p.where, m) == s.value; });
    if (!there && std::find(values.begin(), values.end(), s.value) == values.end()) values.push_back(s.value);
  }
  return values;
}

void World::perform_load(Agent& agent, Pending& p) {
  Observer& who = memory_.observer(p.as.port < 0 ? agent.observer : p.as.port);
  if (p.waits && !agent.free_turn) take_news(agent, p, who);
  if (stopped()) return;
  const auto messages = memory_.readable(who, p.where);
  const auto values = foreseeable_values(agent, p, who);
  const unsigned taken = agent.free_turn ? 0 : choose(ChoiceKind::message, messages.size() + values.size());
  if (stopped()) return;
  if (taken < messages.size()) {
    p.result = memory_.read(who, p.where, messages[taken], p.how);
    p.result_high = memory_.high_at(p.where, messages[taken]);
    note_read(agent, p, who, messages[taken]);
    return;
  }
  const std::uint64_t value = values[taken - messages.size()];
  const std::size_t number = memory_.foresights().size();
  memory_.foresee(who, p.where, value, p.how);
  foresight_readers_.push_back(agent.index);
  p.result = lie == number ? memory_.value_at(p.where, messages.front()) : value;
  agent.chain = mix(mix(agent.chain, 0x10 + number), value);
  agent.emitted = mix(mix(agent.emitted, p.where.line), p.where.mask);
  if (!trace.on) return;
  Event e;
  e.kind = EventKind::load;
  e.step = steps_;
  e.observer = who.id;
  e.site = p.site;
  e.callers = p.callers;
  e.where = p.where;
  e.place = describe(memory_, p.at);
  e.how = p.how;
  e.value = value;
  e.text = "delayed: from a store that is yet to come";
  trace.add(std::move(e));
}

void World::perform_modify(Agent& agent, Pending& p) {
  Observer& who = memory_.observer(p.as.port < 0 ? agent.observer : p.as.port);
  if (may_wait(agent, p) && !agent.free_turn) take_news(agent, p, who);
  if (stopped()) return;
  const std::uint64_t mask =
      p.where.bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * p.where.bytes)) - 1;
  const auto stores = [&](std::uint64_t before) {
    return p.modify != Modify::compare_exchange || before == (p.expected & mask);
  };
  std::vector<std::size_t> messages;
  for (std::size_t m : memory_.readable(who, p.where))
    if (!stores(memory_.value_at(p.where, m)) || memory_.may_go_behind(who, p.where, m, p.how))
      messages.push_back(m);
  const unsigned taken = agent.free_turn ? 0 : choose(ChoiceKind::message, messages.size());
  if (stopped()) return;
  const std::size_t message = messages[taken];
  p.result = memory_.value_at(p.where, message);
  std::uint64_t after = 0;
  switch (p.modify) {
    case Modify::add:
      after = (p.result + p.operand) & mask;
      break;
    case Modify::max:
      after = std::max(p.result, p.operand & mask);
      break;
    case Modify::exchange:
    case Modify::compare_exchange:
      after = p.operand & mask;
      break;
  }
  const bool took_place = stores(p.result);
  if (took_place) {
    for (const StoreWatch& watch : watches_) watch(who, p.where, p.at, p.where.bytes, after);
    if (stopped()) return;
  }
  note_read(agent, p, who, message);
  const unsigned above = memory_.step_above(p.where, message);
  if (!took_place) {
    memory_.read(who, p.where, message, p.how);
  } else {
    memory_.modify(who, p.where, message, after, p.how);
    note_store(agent, p.where, p.at, after);
    if (settings_.load_delay) try_fulfil(agent, p.where, after, who);
    if (stopped()) return;
  }
  if (!trace.on) return;
  Event& e = trace.last();
  e.took_place = took_place;
  e.stored = after;
  e.overtaken = took_place ? above : 0;
  e.message_number = took_place ? who.stores : 0;
}

}  // namespace belfry::check
