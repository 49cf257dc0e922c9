#include "check/gda_checks.hpp"

#include "check/gda_policies.hpp"
#include "check/mutant.hpp"

namespace belfry::check {
namespace {

using device::CompletionLayout;
using device::DoorbellMode;
using device::Ordering;
using device::Publication;
using device::Sharing;
using device::SignalOperation;
using port::Step;

template <Sharing sharing, Publication publication = Publication::handoff,
          CompletionLayout layout = CompletionLayout::collapsed>
using Default = GdaPolicy<Ordering::gpu_release, DoorbellMode::record, sharing, publication, layout>;
using Alone = Default<Sharing::exclusive>;
using AloneRing = Default<Sharing::exclusive, Publication::handoff, CompletionLayout::ring>;
using Handoff = Default<Sharing::gpu>;
using HandoffRing = Default<Sharing::gpu, Publication::handoff, CompletionLayout::ring>;
using BlockHandoff = Default<Sharing::block>;
using Locked = Default<Sharing::gpu, Publication::lock>;

GdaSettings two_blocks() {
  GdaSettings s;
  s.log_blocks = s.log_completions = 1;
  return s;
}
GdaSettings one_block() {
  GdaSettings s;
  s.log_blocks = s.log_completions = 0;
  return s;
}
GdaSettings over_16_bits() {
  GdaSettings s = two_blocks();
  s.first_index = 65535;
  return s;
}
/// A queue of so many blocks that not each of them ends a batch.
GdaSettings eight_blocks() {
  GdaSettings s;
  s.log_blocks = s.log_completions = 3;
  return s;
}
GdaSettings failing(std::uint64_t at) {
  GdaSettings s;
  s.fails_at = at;
  return s;
}
/// A completion ring in its second lap: each of its entries looks like a completion.
GdaSettings failing_in_second_lap() {
  GdaSettings s = failing(5);
  s.first_index = 4;
  s.second_lap = true;
  return s;
}

// ---------------------------------------------------------------- groups

/// A warp of two lanes posts a WRITE for each; another thread posts one to the same queue.
template <class Policy>
void add_warp(World& world, GdaWorld& g) {
  world.add_block("lane", 0, 0, 2, [&g] {
    device::gda::Channel<Policy> channel(g.view, 0);
    const unsigned i = port::lane_index();
    const device::Warp warp{port::warp_mask()};
    const std::size_t number = g.ledger.intend(fmt::format("WRITE {}", i), wire::WqeOpcode::rdma_write,
                                               address(g.remote(g.word(i))), payload_of(i));
    port::store<Scope::block>(g.local(g.word(i)), payload_of(i));
    const device::Operation op = channel.put_each(warp, g.word(i), g.word(i), 8);
    expect_done(op.status, "put_each");
    g.ledger.posted(number, op.index);
    if constexpr (Policy::sharing == Sharing::exclusive)
      expect_done(channel.wait(warp, op, kLong).status, "wait");
  });
}
Scenario warp_each() {
  return gda_scenario<Alone>("warp_each", {}, [](World& world, GdaWorld& g) { add_warp<Alone>(world, g); });
}
Scenario warp_and_thread() {
  return gda_scenario<Handoff>("handoff.warp_wrap", two_blocks(), [](World& world, GdaWorld& g) {
    add_warp<Handoff>(world, g);
    world.add_agent("poster", gpu_thread(0, 1), [&g] {
      device::gda::Channel<Handoff> channel(g.view, 0);
      std::size_t number = 0;
      put(g, channel, 2, number);
    });
  });
}

template <class Group>
Group whole() {
  if constexpr (std::is_same_v<Group, device::Warp>) {
    return {port::warp_mask()};
  } else {
    return {};
  }
}

/// Two threads each store a word of a payload; together they put both words, as two WQEs.
template <class Group>
Scenario together_writes(std::string name) {
  return gda_scenario<Alone>(std::move(name), {}, [](World& world, GdaWorld& g) {
    for (unsigned i = 0; i < 2; ++i)
      g.ledger.intend(fmt::format("WRITE {}", i), wire::WqeOpcode::rdma_write, address(g.remote(g.word(i))),
                      payload_of(i));
    world.add_block("thread", 0, 0, 2, [&g] {
      device::gda::Channel<Alone> channel(g.view, 0);
      const unsigned i = port::thread_index();
      port::store<Scope::block>(g.local(g.word(i)), payload_of(i));
      // The other thread's word first: a call of the group orders what came before it.
      for (unsigned w : {1u, 0u}) {
        const device::Operation op = channel.put(whole<Group>(), g.word(w), g.word(w), 8);
        if (i == 0) expect_done(op.status, "put");
      }
    });
  });
}

/// Two threads get a word together, and each reads it.
template <class Group>
Scenario together_get(std::string name) {
  return gda_scenario<Alone>(std::move(name), {}, [](World& world, GdaWorld& g) {
    *g.remote(g.word(0)) = payload_of(0);
    g.ledger.intend("READ", wire::WqeOpcode::rdma_read, address(g.remote(g.word(0))), 0);
    world.add_block("thread", 0, 0, 2, [&g, &world] {
      device::gda::Channel<Alone> channel(g.view, 0);
      const device::Operation op = channel.get(whole<Group>(), g.word(0), g.word(0), 8);
      expect_done(channel.wait(whole<Group>(), op, kLong).status, "wait");
      world.require(port::load<Scope::block>(g.local(g.word(0))) == payload_of(0),
                    Property::completion_implies_data, "the READ is complete and its data is not there");
    });
  });
}

// ---------------------------------------------------------------- signals and data

/// A put of one or two fragments with a signal; a thread of the peer's GPU waits for it and reads the
/// payload.
Scenario put_signal(std::string name, SignalOperation operation, unsigned words, bool relaxed_window) {
  GdaSettings settings;
  settings.relaxed_window = relaxed_window;
  settings.words_apart = 1;
  return gda_scenario<Alone>(std::move(name), settings, [operation, words](World& world, GdaWorld& g) {
    world.add_agent("poster", gpu_thread(0, 0), [&g, operation, words] {
      device::gda::Channel<Alone> channel(g.view, 0);
      for (unsigned i = 0; i < words; ++i) {
        g.ledger.intend(fmt::format("fragment {}", i), wire::WqeOpcode::rdma_write,
                        address(g.remote(g.word(i))), payload_of(i));
        port::store<Scope::block>(g.local(g.word(i)), payload_of(i));
      }
      const bool adds = operation == SignalOperation::add;
      g.ledger.intend("signal", adds ? wire::WqeOpcode::atomic_fetch_add : wire::WqeOpcode::rdma_write,
                      address(g.remote(g.signal(0))), 1);
      const device::Signal signal{g.signal(0), 1, operation};
      expect_done(channel.put_signal(device::Thread{}, g.word(0), g.word(0), 8 * words, signal).status,
                  "put_signal");
    });
    world.add_agent("waiter", gpu_thread(1, 0), [&g, &world, words] {
      expect_done(device::wait_signal(g.remote(g.signal(0)), device::Compare::greater_equal, 1, kLong),
                  "wait_signal");
      for (unsigned i = 0; i < words; ++i)
        world.require(port::load<Scope::block>(g.remote(g.word(i))) == payload_of(i),
                      Property::signal_implies_payload,
                      "the waiter has seen the signal and reads old payload");
    });
  });
}

/// A get or a fetch_add; what it brought is read once wait() says done.
template <class Policy>
Scenario read_back(std::string name, bool adds, const GdaSettings& settings = {}) {
  return gda_scenario<Policy>(std::move(name), settings, [adds](World& world, GdaWorld& g) {
    *g.remote(g.word(0)) = payload_of(0);
    world.add_agent("reader", gpu_thread(0, 0), [&g, &world, adds] {
      device::gda::Channel<Policy> channel(g.view, 0);
      const std::size_t number =
          g.ledger.intend("operation", adds ? wire::WqeOpcode::atomic_fetch_add : wire::WqeOpcode::rdma_read,
                          address(g.remote(g.word(0))), adds ? 5 : 0);
      const device::Operation op = adds ? channel.fetch_add(device::Thread{}, g.word(0), g.word(0), 5)
                                        : channel.get(device::Thread{}, g.word(0), g.word(0), 8);
      expect_done(op.status, "post");
      expect_done(channel.wait(device::Thread{}, op, kLong).status, "wait");
      g.ledger.completed(number);
      world.require(port::load<Scope::block>(g.local(g.word(0))) == payload_of(0),
                    Property::completion_implies_data, "the operation is complete and its data is not there");
    });
  });
}

/// Without A3: what a get brought is behind its CQE where both go to one memory.
Scenario get_unordered(bool completions_host) {
  GdaSettings settings;
  if (completions_host) settings.completions = device::MemoryKind::host;
  Scenario s =
      read_back<Alone>(completions_host ? "get.completions_host.no_a3" : "get.no_a3", false, settings);
  s.settings.assumptions.ordered_writes = false;
  return s;
}

/// One thread leaves its WRITE to be announced later and flushes; with a second one that posts.
template <class Policy>
Scenario flush(std::string name, unsigned threads) {
  return gda_scenario<Policy>(std::move(name), eight_blocks(), [threads](World& world, GdaWorld& g) {
    g.ledger.allow_nops();
    for (unsigned t = 0; t < threads; ++t) {
      world.add_agent(fmt::format("poster {}", t), gpu_thread(0, static_cast<int>(t)), [&g, t] {
        device::gda::Channel<Policy> channel(g.view, 0);
        std::size_t number = 0;
        put(g, channel, t, number, t == 0 ? device::Announce::later : device::Announce::now);
        if (t != 0) return;
        expect_done(channel.flush(device::Thread{}, kLong).status, "flush");
        g.ledger.completed(number);
      });
    }
  });
}

/// A get that is left to be announced later; what it brought is read behind a flush.
Scenario flush_get() {
  return gda_scenario<Alone>("flush.get", eight_blocks(), [](World& world, GdaWorld& g) {
    *g.remote(g.word(0)) = payload_of(0);
    g.ledger.allow_nops();
    world.add_agent("reader", gpu_thread(0, 0), [&g, &world] {
      device::gda::Channel<Alone> channel(g.view, 0);
      g.ledger.intend("READ", wire::WqeOpcode::rdma_read, address(g.remote(g.word(0))), 0);
      expect_done(channel.get(device::Thread{}, g.word(0), g.word(0), 8, device::Announce::later).status,
                  "get");
      expect_done(channel.flush(device::Thread{}, kLong).status, "flush");
      world.require(port::load<Scope::block>(g.local(g.word(0))) == payload_of(0),
                    Property::completion_implies_data, "the queue is flushed and a READ's data is not there");
    });
  });
}

// ---------------------------------------------------------------- failures

/// Waits for a WRITE of a queue whose WQE at `fails_at` fails. What was not posted is answered at once, with
/// the queue's fault, and was not flushed either.
template <class Channel>
void wait_for_either(GdaWorld& g, Channel& channel, const device::Operation& op, std::size_t number,
                     std::uint64_t fails_at) {
  World& world = World::here();
  const device::Outcome o = channel.wait(device::Thread{}, op, kLong);
  if (o.ok()) return g.ledger.completed(number);
  g.ledger.told_failed(number);
  const bool is_root = op.ok() && op.index == fails_at;
  world.require(o.status == device::Status::completion_error && o.fault.kind == device::Fault::Kind::root &&
                    o.fault.index == fails_at && o.fault.syndrome == wire::Syndrome::remote_access &&
                    o.fault.vendor == 0x88,
                Property::cause_known,
                fmt::format("block {} failed; its poster is told of block {}, syndrome {:#x}, kind {}",
                            fails_at, o.fault.index, static_cast<unsigned>(o.fault.syndrome),
                            static_cast<unsigned>(o.fault.kind)));
  const wire::Syndrome own = is_root ? wire::Syndrome::remote_access : wire::Syndrome::flushed;
  world.require(o.syndrome == (op.ok() ? own : wire::Syndrome::none), Property::cause_known,
                "a WRITE is told the syndrome of another one");
}

template <class Policy>
Scenario failure(std::string name, const std::vector<unsigned>& writes, const GdaSettings& settings) {
  return gda_scenario<Policy>(std::move(name), settings, [writes, settings](World& world, GdaWorld& g) {
    unsigned first = 0;
    for (unsigned t = 0; t < writes.size(); ++t) {
      const unsigned end = first + writes[t];
      world.add_agent(fmt::format("poster {}", t), gpu_thread(0, static_cast<int>(t)),
                      [&g, first, end, at = *settings.fails_at] {
                        device::gda::Channel<Policy> channel(g.view, 0);
                        std::vector<std::pair<device::Operation, std::size_t>> posted;
                        for (unsigned i = first; i < end; ++i) {
                          std::size_t number = 0;
                          const device::Operation op = put_unless_failed(g, channel, i, number);
                          posted.emplace_back(op, number);
                        }
                        for (const auto& [op, number] : posted) wait_for_either(g, channel, op, number, at);
                      });
      first = end;
    }
  });
}

/// One thread posts a WRITE, which fails, and waits for it; another waits for the one before, which is
/// complete.
Scenario failure_seen_by_another() {
  GdaSettings settings = failing(1);
  settings.first_index = 1;
  settings.unseen_completion = true;
  return gda_scenario<Handoff>("fails.seen_by_another", settings, [](World& world, GdaWorld& g) {
    world.add_agent("poster", gpu_thread(0, 0), [&g] {
      device::gda::Channel<Handoff> channel(g.view, 0);
      std::size_t number = 0;
      const device::Operation op = put(g, channel, 1, number);
      wait_for_either(g, channel, op, number, 1);
    });
    world.add_agent("waiter", gpu_thread(0, 1), [&g, &world] {
      device::gda::Channel<Handoff> channel(g.view, 0);
      world.require(channel.wait(device::Thread{}, device::Operation{}, kLong).ok(), Property::exactly_once,
                    "block 0 is said to have failed, and was executed");
    });
  });
}

/// The host looks at the fault of a queue whose owner is still running.
Scenario failure_seen_by_the_host() {
  return gda_scenario<Alone>("fails.seen_by_the_host", failing(1), [](World& world, GdaWorld& g) {
    world.add_agent("poster", gpu_thread(0, 0), [&g] {
      device::gda::Channel<Alone> channel(g.view, 0);
      std::size_t first = 0, second = 0;
      put(g, channel, 0, first);
      const device::Operation op = put(g, channel, 1, second);
      wait_for_either(g, channel, op, second, 1);
    });
    world.add_agent("host", cpu_thread(), [&g, &world] {
      const device::QueueState& state = *g.queue.state;
      while (port::poll<Scope::system>(&state.fault) == 0) {
      }
      port::fence<Scope::system>();
      world.require(port::load<Scope::system>(&state.consumer) == 1, Property::cause_known,
                    "the host widens the fault's index by a consumer of before the fault");
    });
  });
}

// ---------------------------------------------------------------- by name

Scenario alone() { return gda_writes<Alone>("alone.wrap", {{3}, true, false}, two_blocks()); }
Scenario alone_ring() { return gda_writes<AloneRing>("alone.ring.wrap", {{3}, true, false}, two_blocks()); }
Scenario handoff() { return gda_writes<Handoff>("handoff", {{1, 1}, false, false}); }
Scenario handoff_wrap() { return gda_writes<Handoff>("handoff.wrap", {{1, 1}, false, false}, one_block()); }
Scenario locked() { return gda_writes<Locked>("lock", {{1, 1}, false, false}); }
/// The slots of the first lap are used again, and two producers hold slots at once: of one block alone the
/// second producer would find no room until the first has published, whatever the lock is worth.
Scenario locked_wrap() {
  return gda_writes<Locked>("lock.wrap.two_blocks", {{1, 2}, false, false}, two_blocks());
}
/// Field case 17: the GPU cannot ring. Without A1: what comes through a CPU is what the memory model says.
template <Sharing sharing>
Scenario assisted(std::string name, const Posters& posters, GdaSettings settings) {
  settings.assisted = true;
  using Policy = GdaPolicy<Ordering::system_release, DoorbellMode::record, sharing>;
  Scenario s = gda_writes<Policy>("assisted" + name, posters, settings);
  s.settings.assumptions.own_memory = false;
  return s;
}
Scenario assisted_alone() { return assisted<Sharing::exclusive>("", {{1}, true, false}, {}); }
/// Field case 11: whichever of the two is ready first.
Scenario assisted_handoff() { return assisted<Sharing::gpu>(".handoff", {{1, 1}, false, false}, {}); }
Scenario in_warp() { return together_writes<device::Warp>("warp_together"); }
Scenario in_block() { return together_writes<device::Block>("block_together"); }
Scenario warp_get() { return together_get<device::Warp>("warp_get"); }
Scenario signal_set() { return put_signal("put_signal.set.relaxed", SignalOperation::set, 1, true); }
Scenario get() { return read_back<Alone>("get", false); }
Scenario ring_failure() { return failure<AloneRing>("fails.ring.second_lap", {3}, failing_in_second_lap()); }

Check holds(Scenario scenario) {
  Check c;
  c.scenario = std::move(scenario);
  return c;
}
/// Too large for the quick set.
Check large(Scenario scenario, int deviations = -1) {
  Check c = holds(std::move(scenario));
  c.is_long = true;
  c.deviations = deviations;
  return c;
}

}  // namespace

Check mutant_of(const MutantRow& row) {
  Check c = mutant_of(row.step, row.scenario);
  c.random_first = row.random_first;
  return c;
}

Check mutant_of(Step step, const Scenario& scenario) {
  Check c;
  c.scenario = scenario;
  c.scenario.name = fmt::format("mutant.{}.{}", step_name(step), scenario.name);
  c.without = step;
  c.holds = false;
  return c;
}

std::vector<Check> gda_checks() {
  std::vector<Check> checks;
  for (Scenario& s :
       std::vector<Scenario>{alone(),
                             alone_ring(),
                             gda_writes<Alone>("alone.65535", {{3}, true, false}, over_16_bits()),
                             handoff(),
                             gda_writes<BlockHandoff>("handoff.block", {{1, 1}, false, true}),
                             locked(),
                             gda_writes<Locked>("lock.wrap", {{1, 1}, false, false}, one_block()),
                             handoff_wrap(),
                             warp_each(),
                             warp_and_thread(),
                             in_warp(),
                             in_block(),
                             warp_get(),
                             together_get<device::Block>("block_get"),
                             assisted_alone(),
                             signal_set(),
                             put_signal("put_signal.add", SignalOperation::add, 1, false),
                             put_signal("put_signal.add.two_fragments", SignalOperation::add, 2, true),
                             get(),
                             get_unordered(false),
                             read_back<AloneRing>("get.ring", false),
                             read_back<Alone>("fetch_add", true),
                             flush<Alone>("flush", 1),
                             flush_get(),
                             failure_seen_by_the_host(),
                             failure<Alone>("fails.alone", {2}, failing(1)),
                             ring_failure(),
                             failure_seen_by_another(),
                             gda_writes<Handoff>("handoff.three", {{1, 1, 1}, false, false})})
    checks.push_back(holds(std::move(s)));
  checks.push_back(holds(get_unordered(true)));
  checks.back().holds = false;
  checks.push_back(
      large(gda_writes<Handoff>("handoff.wrap.two_blocks", {{1, 2}, false, false}, two_blocks())));
  checks.push_back(large(locked_wrap()));
  checks.push_back(large(assisted<Sharing::exclusive>(".wrap", {{2}, true, false}, one_block())));
  checks.push_back(large(assisted_handoff()));
  checks.push_back(large(gda_writes<Locked>("lock.three", {{1, 1, 1}, false, false})));
  checks.push_back(large(gda_writes<Handoff>("handoff.two_each", {{2, 2}, false, false})));
  checks.push_back(large(gda_writes<Handoff>("handoff.three_wrap", {{1, 1, 1}, false, false}, two_blocks())));
  checks.push_back(large(flush<Handoff>("handoff.flush", 2), 3));
  checks.push_back(large(gda_writes<Handoff>("handoff.wait", {{1, 1}, true, false}), 3));
  checks.push_back(large(gda_writes<Locked>("lock.wait", {{1, 1}, true, false}), 3));
  checks.push_back(large(gda_writes<HandoffRing>("handoff.ring.wait", {{1, 1}, true, false}), 3));
  checks.push_back(large(gda_writes<Handoff>("handoff.wrap.wait", {{2, 2}, true, false}, two_blocks()), 3));
  checks.push_back(large(failure<Handoff>("fails.handoff", {1, 1}, failing(1)), 4));
  checks.push_back(large(failure<HandoffRing>("fails.handoff.ring", {1, 2}, failing(1)), 4));
  return checks;
}

std::vector<Check> gda_mutants() {
  std::vector<Check> mutants = gda_ordering_mutants();
  const MutantRow all[] = {
      {Step::acquire_published, handoff_wrap()},
      {Step::warp_after_reservation, warp_and_thread()},
      {Step::wait_turn, handoff()},
      {Step::acquire_turn, handoff()},
      {Step::release_turn, handoff()},
      {Step::warp_before_publication, in_warp()},
      {Step::warp_before_publication, warp_each()},
      {Step::block_before_publication, in_block()},
      {Step::lock_acquire, locked()},
      {Step::lock_release, locked()},
      {Step::lock_until_published, locked()},
      {Step::lock_until_published, locked_wrap(), true},
      {Step::forward_acquire, assisted_alone()},
      {Step::wait_turn, assisted_handoff(), true},
      {Step::check_space, alone()},
      {Step::check_space, handoff_wrap()},
      {Step::check_written, alone()},
      {Step::check_owner, ring_failure()},
      {Step::acquire_completion, get()},
      {Step::acquire_flush, flush_get()},
      {Step::acquire_error, ring_failure()},
      {Step::release_fault, failure_seen_by_the_host()},
      {Step::release_fault, failure_seen_by_another()},
      {Step::acquire_fault, failure_seen_by_another()},
      {Step::warp_after_call, warp_get()},
      {Step::acquire_signal, signal_set()},
      {Step::check_counter, alone()},
      {Step::signal_after_payload, signal_set()},
  };
  for (const MutantRow& row : all) mutants.push_back(mutant_of(row));
  return mutants;
}

}  // namespace belfry::check
