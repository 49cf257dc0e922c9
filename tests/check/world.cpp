#include "check/world.hpp"

#include <cstring>
#include <utility>

#include "check/agent.hpp"
#include "check/hash.hpp"
#include "check/misuse.hpp"

namespace belfry::check {
namespace {

World* active = nullptr;

/// Shared memory lies at the same addresses in each execution: addresses are in WQEs, and thereby in states.
class Arena {
 public:
  std::byte* take(std::size_t bytes) {
    if (used_ + bytes > kBytes) throw Misuse("shared memory of more than 1 MiB");
    used_ += bytes;
    return bytes_ + used_ - bytes;
  }
  void begin() {
    if (in_use_) throw Misuse("one world at a time");
    in_use_ = true;
    used_ = 0;
  }
  void end() { in_use_ = false; }

 private:
  static constexpr std::size_t kBytes = 1 << 20;
  alignas(128) std::byte bytes_[kBytes];
  std::size_t used_ = 0;
  bool in_use_ = false;
};
Arena arena;

const void* caller(const void* address) { return address; }

}  // namespace

// ---------------------------------------------------------------- set-up

World::World(const WorldSettings& settings, Chooser& chooser)
    : settings_(settings), chooser_(chooser), memory_(settings.assumptions) {
  arena.begin();
}

World::~World() {
  // Coroutines first: what they unwind still looks at the rest.
  if (!verdict_) verdict_ = Verdict::stopped;
  World* before = std::exchange(active, this);
  for (auto& agent : agents_) {
    running_ = agent->index;
    agent->coroutine.reset();
  }
  active = before;
  arena.end();
}

std::byte* World::make_bytes(std::string name, std::size_t bytes, MemoryKind kind, int gpu,
                             unsigned granule) {
  bytes = (bytes + 127) / 128 * 128;
  std::byte* const at = arena.take(bytes);
  std::memset(at, 0, bytes);
  memory_.add_region(std::move(name), {at, bytes}, kind, gpu, granule);
  return at;
}

int World::add(std::string name, Place place, bool daemon, std::function<void()> body) {
  auto agent = std::make_unique<Agent>(*this, std::move(name), place, daemon, std::move(body));
  agent->index = static_cast<int>(agents_.size());
  agent->observer = memory_.add_observer(place, agent->name);
  agents_.push_back(std::move(agent));
  return agents_.back()->observer;
}

int World::add_agent(std::string name, Place place, std::function<void()> body) {
  return add(std::move(name), place, false, std::move(body));
}
int World::add_daemon(std::string name, Place place, std::function<void()> body) {
  return add(std::move(name), place, true, std::move(body));
}
int World::add_port(std::string name, Place place) { return memory_.add_observer(place, std::move(name)); }

void World::add_block(const std::string& name, int gpu, int block, unsigned threads,
                      std::function<void()> body) {
  if (threads > port::kWarpSize) throw Misuse("a block of the checker is at most one warp");
  for (unsigned i = 0; i < threads; ++i) {
    add(name + "." + std::to_string(i), gpu_thread(gpu, block), false, body);
    Agent& agent = *agents_.back();
    agent.lane = agent.thread = i;
    agent.block = static_cast<std::uint32_t>(block);
    agent.threads_a_block = threads;
  }
}

// ---------------------------------------------------------------- accesses

World& World::here() {
  if (active == nullptr || active->running_ == kNobody) throw Misuse("no agent runs here");
  return *active;
}

std::uint64_t World::peek(const void* at, unsigned bytes) const {
  const Where where = memory_.locate(at, bytes);
  return memory_.value_at(where, memory_.newest(where));
}

Observer& World::me() { return memory_.observer(running().observer); }

/// Leaves the running agent until the scheduler has performed what it asks for.
void World::wait_for_turn(Pending& pending) {
  Agent& agent = running();
  agent.pending = &pending;
  agent.coroutine->suspend();
}

void World::stop(Verdict verdict) {
  if (!verdict_) verdict_ = verdict;
  if (running_ == kNobody) return;
  Agent& agent = running();
  if (!agent.coroutine->unwinding()) agent.coroutine->suspend();  // and is never resumed
}

void World::fail(Property property, std::string text) {
  if (verdict_) return;
  // What happened on the strength of a load of the future is not known to be possible yet.
  if (memory_.foresight_open()) return stop(Verdict::discarded);
  violation_ = {property, std::move(text)};
  stop(Verdict::violated);
}

unsigned World::choose(ChoiceKind kind, std::size_t count, bool free) {
  if (count == 1) return 0;
  Choice choice{kind, free, static_cast<std::uint16_t>(count), 0};
  const std::optional<unsigned> taken = chooser_.choose(choice);
  if (!taken) {
    stop(Verdict::stopped);
    return 0;
  }
  choice.taken = static_cast<std::uint16_t>(*taken);
  choices_.push_back(choice);
  return *taken;
}

std::uint64_t World::load(const void* at, unsigned bytes, const Manner& how, bool waits, As as,
                          const void* site) {
  if (stopped()) return 0;
  Pending p;
  p.what = What::load;
  p.at = at;
  p.where = memory_.locate(at, bytes);
  p.how = how;
  p.waits = waits;
  p.as = as;
  p.site = site;
  if (trace.on) p.callers = callers_of(site);
  Agent& agent = running();
  note_use(p.where.line, agent, false);
  begin_loop_turn(agent, p);
  if (as.at_once || is_quiet(p)) {
    agent.pending = &p;
    perform(agent);
  } else {
    wait_for_turn(p);
  }
  last_high_ = p.result_high;
  return p.result;
}

std::uint64_t World::modify(void* at, unsigned bytes, Modify what, const Manner& how, std::uint64_t operand,
                            std::uint64_t expected, As as, const void* site) {
  if (stopped()) return 0;
  Pending p;
  p.what = What::modify;
  p.at = at;
  p.where = memory_.locate(at, bytes);
  p.how = how;
  p.modify = what;
  p.operand = operand;
  p.expected = expected;
  p.as = as;
  p.site = site;
  if (trace.on) p.callers = callers_of(site);
  Agent& agent = running();
  note_use(p.where.line, agent, true);
  begin_loop_turn(agent, p);
  wait_for_turn(p);
  return p.result;
}

/// Nobody else stores there, so it does not matter when the load is made.
bool World::is_quiet(const Pending& p) const {
  return !p.waits && contended != nullptr &&
         (p.where.line >= contended->size() || !(*contended)[p.where.line]) && steps_ < settings_.max_steps;
}

void World::note_use(std::size_t line, const Agent& agent, bool writes) {
  users.resize(memory_.lines());
  writers.resize(memory_.lines());
  users[line] |= std::uint64_t{1} << agent.index;
  if (writes) writers[line] |= std::uint64_t{1} << agent.index;
}

/// A loop that waits comes around. What it reads again it does not remember from before: states would differ
/// by how often somebody looked in vain. So its chain is what it knew when it last stored, what it has read
/// since and not read again in this turn, the turn, and what binds its view.
void World::begin_loop_turn(Agent& agent, const Pending& p) {
  if (!may_wait(agent, p)) return;
  auto& readings = agent.readings;
  std::size_t turn = readings.size();
  while (turn > 0 && (readings[turn - 1].site != p.site || readings[turn - 1].at != p.at)) --turn;
  if (turn == 0) return;
  --turn;
  const auto is_read_again = [&](const Reading& r) {
    for (std::size_t i = turn; i < readings.size(); ++i)
      if (readings[i].site == r.site && readings[i].at == r.at) return true;
    return false;
  };
  std::vector<Reading> kept;
  for (std::size_t i = 0; i < turn; ++i)
    if (!is_read_again(readings[i])) kept.push_back(readings[i]);
  kept.insert(kept.end(), readings.begin() + static_cast<std::ptrdiff_t>(turn), readings.end());
  readings = std::move(kept);
  agent.chain = mix(agent.before_readings, memory_.hash_of(memory_.observer(agent.observer)));
  for (const Reading& r : readings) agent.chain = mix(agent.chain, r.read);
}

void World::remember_only(std::initializer_list<std::uint64_t> values) {
  Agent& agent = running();
  agent.chain = memory_.hash_of(me());
  for (std::uint64_t value : values) agent.chain = mix(agent.chain, value);
  agent.readings.clear();
  agent.before_readings = agent.chain;
}

void World::store(void* at, unsigned bytes, std::uint64_t value, const Manner& how, As as, const void* site,
                  std::uint64_t high) {
  if (stopped()) return;
  Agent& agent = running();
  Observer& who = memory_.observer(as.port < 0 ? agent.observer : as.port);
  const Where where = memory_.locate(at, bytes);
  note_use(where.line, agent, true);
  for (const StoreWatch& watch : watches_) watch(who, where, at, bytes, value);
  if (stopped()) return;
  if (memory_.awaits_foresight(who, where)) return stop(Verdict::discarded);
  const auto places = memory_.places_for_store(who, where, how);
  const unsigned taken = choose(ChoiceKind::place, places.size());
  if (stopped()) return;
  const unsigned above = memory_.step_above(where, places[taken]);
  memory_.step = ++steps_;
  const Message& message = memory_.write(who, where, value, how, places[taken], high);
  if (trace.on) {
    Event e;
    e.kind = EventKind::store;
    e.step = steps_;
    e.observer = who.id;
    e.site = site;
    e.callers = callers_of(site);
    e.where = where;
    e.place = describe(memory_, at);
    e.how = how;
    e.value = value;
    e.overtaken = above;
    e.message_number = message.number;
    trace.add(std::move(e));
  }
  note_store(agent, where, at, bytes > 8 ? mix(value, high) : value);
  if (settings_.load_delay) try_fulfil(agent, where, value, who);
  if (trace.on) trace.look(memory_, steps_);
}

void World::note_store(Agent& agent, const Where& where, const void*, std::uint64_t value) {
  agent.readings.clear();
  agent.before_readings = agent.chain;
  agent.emitted = mix(mix(mix(agent.emitted, where.line), where.mask), value);
  idle_rounds_ = 0;
  if (settings_.load_delay) sightings.push_back({agent.index, where.line, where.mask, value});
}

void World::try_fulfil(Agent& agent, const Where& where, std::uint64_t, const Observer& who) {
  for (std::size_t i = 0; i < memory_.foresights().size(); ++i) {
    // The message moves in memory as others are put in front of it: find it anew.
    const Line& line = memory_.line(where);
    const Message* message = nullptr;
    for (const Message& m : line.order)
      if (m.writer == who.id && m.number == who.stores) message = &m;
    if (message == nullptr || !memory_.may_fulfil(i, who, *message, where)) continue;
    const bool fulfils = choose(ChoiceKind::fulfil, 2) == 0;
    if (stopped()) return;
    if (!fulfils) continue;
    foresight_at_hand_ = i;
    if (lie == i) return stop(Verdict::certify);  // as far as this execution was wanted
    const auto certificate = chooser_.certificate(choices_, i, emitted_by_reader());
    if (certificate == Certificate::unknown) return stop(Verdict::certify);
    if (certificate == Certificate::refused) return stop(Verdict::discarded);
    memory_.fulfil(i, *message);
    agent.chain = mix(agent.chain, 0xf0 + i);
  }
}

std::uint64_t World::emitted_by_reader() const {
  return agents_[static_cast<std::size_t>(foresight_readers_[foresight_at_hand_])]->emitted;
}

void World::fence(Scope scope, bool sequential, const void* site) {
  if (stopped()) return;
  Agent& agent = running();
  if (sequential) {
    Pending p;
    p.what = What::fence;
    p.how.scope = scope;
    p.site = site;
    if (trace.on) p.callers = callers_of(site);
    wait_for_turn(p);
    return;
  }
  ++steps_;
  memory_.fence(me(), scope);
  agent.emitted = mix(agent.emitted, 0xfe + static_cast<unsigned>(scope));
  if (!trace.on) return;
  Event e;
  e.kind = EventKind::fence;
  e.step = steps_;
  e.observer = agent.observer;
  e.site = site;
  e.callers = callers_of(site);
  e.how.scope = scope;
  trace.add(std::move(e));
  trace.look(memory_, steps_);
}

// ---------------------------------------------------------------- from the checked sources

namespace {

/// The world whose agent runs, or null: then memory is plain.
World* inside(const void* at) {
  if (active == nullptr) return nullptr;
  static_cast<void>(at);
  return active;
}

std::uint64_t plain_load(const void* at, unsigned bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

}  // namespace

[[gnu::noinline]] std::uint64_t do_load(const void* at, unsigned bytes, port::Scope scope, bool acquire,
                                        bool waits) {
  const void* site = caller(__builtin_return_address(0));
  World* world = inside(at);
  if (world == nullptr) return plain_load(at, bytes);
  if (!world->agent_runs()) return world->peek(at, bytes);
  return world->load(at, bytes, {scope, true, acquire, false}, waits, {}, site);
}

[[gnu::noinline]] void do_store(void* at, unsigned bytes, std::uint64_t value, port::Scope scope,
                                bool release, bool strong) {
  const void* site = caller(__builtin_return_address(0));
  World* world = inside(at);
  if (world == nullptr) {
    std::memcpy(at, &value, bytes);
    return;
  }
  world->store(at, bytes, value, {scope, strong, false, release}, {}, site);
}

[[gnu::noinline]] void do_load_16(const void* at, std::uint64_t (&value)[2]) {
  const void* site = caller(__builtin_return_address(0));
  World* world = inside(at);
  if (world == nullptr || !world->agent_runs()) {
    std::memcpy(value, at, sizeof value);
    return;
  }
  value[0] = world->load(at, 16, {port::Scope::system, true, false, false}, false, {}, site);
  value[1] = world->last_high();
}

[[gnu::noinline]] void do_store_16(void* at, std::uint64_t low, std::uint64_t high) {
  const void* site = caller(__builtin_return_address(0));
  if (World* world = inside(at)) {
    world->store(at, 16, low, {port::Scope::system, true, false, false}, {}, site, high);
    return;
  }
  const std::uint64_t value[2] = {low, high};
  std::memcpy(at, value, sizeof value);
}

[[gnu::noinline]] void do_store_doorbell(void* at, std::uint64_t value) {
  const void* site = caller(__builtin_return_address(0));
  World* world = inside(at);
  if (world == nullptr) {
    std::memcpy(at, &value, 8);
    return;
  }
  const bool orders = world->me().place.kind != AgentKind::gpu;
  world->store(at, 8, value, {Scope::system, true, false, orders}, {}, site);
}

[[gnu::noinline]] std::uint64_t do_modify(void* at, unsigned bytes, Modify what, port::Scope scope,
                                          port::Order order, std::uint64_t operand, std::uint64_t expected) {
  const void* site = caller(__builtin_return_address(0));
  World* world = inside(at);
  if (world == nullptr) throw Misuse("a read-modify-write outside of an agent");
  const bool acquire = order == Order::acquire || order == Order::acquire_release;
  const bool release = order == Order::release || order == Order::acquire_release;
  return world->modify(at, bytes, what, {scope, true, acquire, release}, operand, expected, {}, site);
}

[[gnu::noinline]] void do_fence(port::Scope scope) {
  const void* site = caller(__builtin_return_address(0));
  if (World* world = inside(nullptr)) world->fence(scope, false, site);
}
[[gnu::noinline]] void do_fence_sequential(port::Scope scope) {
  const void* site = caller(__builtin_return_address(0));
  if (World* world = inside(nullptr)) world->fence(scope, true, site);
}

std::uint64_t now_ns() { return active != nullptr ? active->now_ns() : 1; }

/// For world_run.cpp, which decides who runs.
World*& active_world() { return active; }

}  // namespace belfry::check
