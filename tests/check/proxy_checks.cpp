#include "check/proxy_checks.hpp"

#include <fmt/format.h>

#include <utility>

#include "check/proxy_world.hpp"

namespace belfry::check {
namespace {

using device::SignalOperation;
using device::proxy::Form;
using device::proxy::Protocol;
using port::Step;
using proxy::CounterPath;

template <Protocol protocol_, Form form_ = Form::payload_published>
struct Policy : device::proxy::DefaultProxyPolicy {
  static constexpr Protocol protocol = protocol_;
  static constexpr Form form = form_;
};
using Tuned = Policy<Protocol::tuned>;
/// A payload published no further than the GPU.
struct TunedGpuScope : Tuned {
  static constexpr port::Scope publish_scope = port::Scope::gpu;
  static constexpr bool assume_own_memory = true;
};
using TunedVisible = Policy<Protocol::tuned, Form::payload_visible>;
using SharedTuned = Policy<Protocol::shared_tuned>;
using Baseline = Policy<Protocol::baseline>;
using BaselineVisible = Policy<Protocol::baseline, Form::payload_visible>;

constexpr port::Timeout kLong = port::Timeout::seconds(1);

std::uint64_t payload_of(unsigned i) { return 0x100 + i; }
std::uintptr_t address(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

void expect_done(device::Status status, const char* call) {
  World::here().require(status == device::Status::done, Property::waits_end,
                        fmt::format("{} says {}", call, device::status_name(status)));
}

std::string counter_suffix(CounterPath counter) {
  return counter == CounterPath::host  ? ""
         : counter == CounterPath::nic ? ".nic_counter"
                                       : ".gdrcopy_counter";
}

ProxySettings slots(unsigned log_slots) {
  ProxySettings s;
  s.log_slots = log_slots;
  return s;
}

Scenario scenario_of(std::string name, const ProxySettings& settings,
                     std::function<void(World&, ProxyWorld&)> agents) {
  Scenario s;
  s.name = "proxy." + std::move(name);
  s.build = [settings, agents = std::move(agents)](World& world) {
    agents(world, world.keep<ProxyWorld>(world, settings));
  };
  return s;
}

/// Enqueues WRITE i of this thread's own word to a peer.
/// \param stores false: the payload is there already, for all to see
template <class Channel>
device::Operation put(ProxyWorld& p, Channel& channel, unsigned i, std::size_t& number, unsigned peer = 0,
                      bool stores = true) {
  Ledger& ledger = p.peers[peer]->ledger;
  number = ledger.intend(fmt::format("WRITE {}", i), wire::WqeOpcode::rdma_write,
                         address(p.remote(p.word(i), peer)), payload_of(i));
  if (stores) port::store<Scope::block>(p.local(p.word(i)), payload_of(i));
  const device::Operation op = channel.put(device::Thread{}, p.word(i), p.word(i), 8);
  expect_done(op.status, "put");
  return op;
}

/// Threads of as many blocks, each with so many WRITEs; each then waits for its last one, or not.
template <class Policy>
Scenario writes(std::string name, const std::vector<unsigned>& each, bool waits,
                const ProxySettings& settings, bool stores = true) {
  return scenario_of(std::move(name), settings, [each, waits, stores](World& world, ProxyWorld& p) {
    unsigned first = 0;
    for (unsigned t = 0; t < each.size(); ++t) {
      const unsigned end = first + each[t];
      if (!stores)
        for (unsigned i = first; i < end; ++i) *p.local(p.word(i)) = payload_of(i);
      world.add_agent(fmt::format("poster {}", t), gpu_thread(0, static_cast<int>(t)),
                      [&p, first, end, waits, stores] {
                        device::proxy::Channel<Policy> channel(p.view, 0);
                        device::Operation last;
                        std::size_t number = 0;
                        for (unsigned i = first; i < end; ++i) last = put(p, channel, i, number, 0, stores);
                        if (!waits) return;
                        expect_done(channel.wait(device::Thread{}, last, kLong).status, "wait");
                        p.peers[0]->ledger.completed(number);
                      });
      first = end;
    }
  });
}

/// A warp of two lanes, and another thread, to one ring of two slots.
template <class Policy>
Scenario warp_and_thread(std::string name) {
  return scenario_of(std::move(name), slots(1), [](World& world, ProxyWorld& p) {
    world.add_block("lane", 0, 0, 2, [&p] {
      device::proxy::Channel<Policy> channel(p.view, 0);
      const unsigned i = port::lane_index();
      p.peers[0]->ledger.intend(fmt::format("WRITE {}", i), wire::WqeOpcode::rdma_write,
                                address(p.remote(p.word(i))), payload_of(i));
      port::store<Scope::block>(p.local(p.word(i)), payload_of(i));
      expect_done(channel.put_each(device::Warp{port::warp_mask()}, p.word(i), p.word(i), 8).status,
                  "put_each");
    });
    world.add_agent("poster", gpu_thread(0, 1), [&p] {
      device::proxy::Channel<Policy> channel(p.view, 0);
      std::size_t number = 0;
      put(p, channel, 2, number);
    });
  });
}

/// A get; what it brought is read once wait() says done.
Scenario get(CounterPath counter = CounterPath::host, bool relaxed_counter = false,
             device::MemoryKind payload = device::MemoryKind::own) {
  ProxySettings settings = slots(1);
  settings.payload = payload;
  settings.counter = counter;
  settings.relaxed_counter = relaxed_counter;
  std::string name = "get" + counter_suffix(counter) + (relaxed_counter ? ".relaxed" : "");
  return scenario_of(std::move(name), settings, [](World& world, ProxyWorld& p) {
    *p.remote(p.word(0)) = payload_of(0);
    world.add_agent("reader", gpu_thread(0, 0), [&p, &world] {
      device::proxy::Channel<Tuned> channel(p.view, 0);
      p.peers[0]->ledger.intend("READ", wire::WqeOpcode::rdma_read, address(p.remote(p.word(0))), 0);
      const device::Operation op = channel.get(device::Thread{}, p.word(0), p.word(0), 8);
      expect_done(op.status, "get");
      expect_done(channel.wait(device::Thread{}, op, kLong).status, "wait");
      world.require(port::load<Scope::block>(p.local(p.word(0))) == payload_of(0),
                    Property::completion_implies_data, "the READ is counted and its data is not there");
    });
  });
}

/// Without A3: the NIC's writes are ordered within one memory.
Scenario get_unordered(CounterPath counter, device::MemoryKind payload = device::MemoryKind::own) {
  Scenario s = get(counter, false, payload);
  s.name += payload == device::MemoryKind::host ? ".payload_host.no_a3" : ".no_a3";
  s.settings.assumptions.ordered_writes = false;
  return s;
}

Scenario put_signal(std::string name, SignalOperation operation) {
  return scenario_of(std::move(name), slots(1), [operation](World& world, ProxyWorld& p) {
    world.add_agent("poster", gpu_thread(0, 0), [&p, operation] {
      device::proxy::Channel<Tuned> channel(p.view, 0);
      Ledger& ledger = p.peers[0]->ledger;
      ledger.intend("payload", wire::WqeOpcode::rdma_write, address(p.remote(p.word(0))), payload_of(0));
      const bool adds = operation == SignalOperation::add;
      ledger.intend("signal", adds ? wire::WqeOpcode::atomic_fetch_add : wire::WqeOpcode::rdma_write,
                    address(p.remote(p.signal(0))), 1);
      port::store<Scope::block>(p.local(p.word(0)), payload_of(0));
      const device::Signal signal{p.signal(0), 1, operation};
      expect_done(channel.put_signal(device::Thread{}, p.word(0), p.word(0), 8, signal).status, "put_signal");
    });
    world.add_agent("waiter", gpu_thread(1, 0), [&p, &world] {
      expect_done(device::wait_signal(p.remote(p.signal(0)), device::Compare::greater_equal, 1, kLong),
                  "wait_signal");
      world.require(port::load<Scope::block>(p.remote(p.word(0))) == payload_of(0),
                    Property::signal_implies_payload, "the waiter has seen the signal and reads old payload");
    });
  });
}

/// One ring, two peers, whose NICs are not equally fast.
Scenario two_peers() {
  ProxySettings settings = slots(1);
  settings.peers = 2;
  return scenario_of("two_peers", settings, [](World& world, ProxyWorld& p) {
    for (unsigned i = 0; i < 2; ++i) *p.local(p.word(i)) = payload_of(i);
    world.add_agent("poster", gpu_thread(0, 0), [&p] {
      // One producer of the ring, as the tuned protocol demands, with a channel for each peer.
      device::proxy::Channel<Policy<Protocol::shared_tuned, Form::payload_visible>> first(p.view, 0),
          second(p.view, 1);
      std::size_t numbers[2];
      const device::Operation op = put(p, first, 0, numbers[0], 0, false);
      const device::Operation last = put(p, second, 1, numbers[1], 1, false);
      expect_done(first.wait(device::Thread{}, op, kLong).status, "wait");
      p.peers[0]->ledger.completed(numbers[0]);
      expect_done(second.wait(device::Thread{}, last, kLong).status, "wait");
      p.peers[1]->ledger.completed(numbers[1]);
    });
  });
}

/// Two WRITEs, of which the second fails. Each is told what became of it.
Scenario failure(CounterPath counter = CounterPath::host) {
  ProxySettings settings = slots(1);
  settings.fails_at = 1;
  settings.counter = counter;
  return scenario_of("fails" + counter_suffix(counter), settings, [](World& world, ProxyWorld& p) {
    for (unsigned i = 0; i < 2; ++i) *p.local(p.word(i)) = payload_of(i);
    world.add_agent("poster", gpu_thread(0, 0), [&p, &world] {
      device::proxy::Channel<TunedVisible> channel(p.view, 0);
      std::size_t numbers[2];
      device::Operation ops[2];
      for (unsigned i = 0; i < 2; ++i) ops[i] = put(p, channel, i, numbers[i], 0, false);
      for (unsigned i = 0; i < 2; ++i) {
        const device::Outcome o = channel.wait(device::Thread{}, ops[i], kLong);
        if (o.ok()) {
          p.peers[0]->ledger.completed(numbers[i]);
          continue;
        }
        p.peers[0]->ledger.told_failed(numbers[i]);
        world.require(o.fault.kind == device::Fault::Kind::root && o.fault.index == 1 &&
                          o.syndrome == wire::Syndrome::remote_access && o.fault.qpn == p.peers[0]->queue.qpn,
                      Property::cause_known,
                      fmt::format("WRITE 1 failed on QP {:#x}; its poster is told of index {} on QP {:#x}",
                                  p.peers[0]->queue.qpn, o.fault.index, o.fault.qpn));
      }
    });
  });
}

Scenario tuned_wrap() { return writes<Tuned>("tuned.wrap", {3}, false, slots(1)); }
Scenario tuned() { return writes<Tuned>("tuned", {1}, false, slots(1)); }
Scenario baseline_visible() {
  return writes<BaselineVisible>("baseline.payload_visible", {1}, false, slots(1));
}
Scenario shared_wrap() { return writes<SharedTuned>("shared_tuned.wrap", {1, 1}, false, slots(0)); }
Scenario shared_three() { return writes<SharedTuned>("shared_tuned.wrap.three", {1, 1, 1}, false, slots(0)); }
Scenario shared_warp() { return warp_and_thread<SharedTuned>("shared_tuned.warp_wrap"); }
Scenario baseline_warp() { return warp_and_thread<Baseline>("baseline.warp_wrap"); }

/// As tuned(), published at GPU scope: needs A1, past the CPU that the worker is.
Scenario gpu_scope(std::string name, device::MemoryKind payload, Assumptions assumptions) {
  ProxySettings settings = slots(1);
  settings.payload = payload;
  Scenario s = writes<TunedGpuScope>("tuned.publish_gpu" + std::move(name), {1}, false, settings);
  s.settings.assumptions = assumptions;
  return s;
}

Check holds(Scenario scenario, bool is_long = false, int deviations = -1) {
  Check c;
  c.scenario = std::move(scenario);
  c.is_long = is_long;
  c.deviations = deviations;
  return c;
}

}  // namespace

std::vector<Check> proxy_checks() {
  std::vector<Check> checks;
  for (Scenario& s : std::vector<Scenario>{
           tuned(), writes<TunedVisible>("tuned.payload_visible", {1}, true, slots(1), false),
           baseline_visible(), shared_wrap(), get(), put_signal("put_signal.set", SignalOperation::set)})
    checks.push_back(holds(std::move(s)));
  // Payload that this kernel has just written and nobody publishes: what the two forms are two for.
  Check unpublished = holds(writes<TunedVisible>("tuned.payload_visible.not_so", {1}, false, slots(1)));
  unpublished.holds = false;
  checks.push_back(std::move(unpublished));
  constexpr Assumptions kPastCpu{true, true, true};
  const auto own = device::MemoryKind::own;
  checks.push_back(holds(gpu_scope("", own, kPastCpu)));
  for (Scenario& s : std::vector<Scenario>{gpu_scope(".no_a1", own, {false, true, true}),
                                           gpu_scope(".a1_ends_at_cpu", own, {true, true, false}),
                                           gpu_scope(".payload_host", device::MemoryKind::host, kPastCpu),
                                           gpu_scope(".payload_peer", device::MemoryKind::peer, kPastCpu),
                                           get(CounterPath::nic, true), get_unordered(CounterPath::host),
                                           get_unordered(CounterPath::gdrcopy)}) {
    checks.push_back(holds(std::move(s)));
    checks.back().holds = false;
  }
  checks.push_back(holds(get_unordered(CounterPath::nic)));
  checks.push_back(holds(get_unordered(CounterPath::host, device::MemoryKind::host)));
  for (CounterPath counter : {CounterPath::gdrcopy, CounterPath::nic}) {
    checks.push_back(holds(get(counter)));
    checks.push_back(holds(failure(counter), true, 3));
  }
  for (Scenario& s : std::vector<Scenario>{tuned_wrap(), two_peers(), failure()})
    checks.push_back(holds(std::move(s), true));
  checks.push_back(holds(writes<Baseline>("baseline.wrap", {1, 1}, false, slots(0)), true));
  checks.push_back(holds(put_signal("put_signal.add", SignalOperation::add), true));
  for (Scenario& s : std::vector<Scenario>{shared_three(), shared_warp(), baseline_warp(),
                                           writes<SharedTuned>("shared_tuned.wait", {1, 1}, true, slots(0))})
    checks.push_back(holds(std::move(s), true, 3));
  return checks;
}

std::vector<Check> proxy_mutants() {
  const MutantRow all[] = {
      {Step::proxy_payload_before_descriptor, tuned()},
      {Step::proxy_baseline_release, baseline_visible()},
      {Step::proxy_baseline_release, baseline_warp(), true},
      {Step::proxy_room, tuned_wrap()},
      {Step::proxy_parity, tuned_wrap()},
      {Step::proxy_acquire_descriptor, tuned()},
      {Step::proxy_acquire_taken, shared_wrap()},
      {Step::proxy_acquire_cached, shared_three(), true},
      {Step::warp_after_reservation, shared_warp(), true},
      {Step::proxy_release_completion, get()},
      {Step::proxy_release_completion, get(CounterPath::gdrcopy)},
      {Step::proxy_acquire_completion, get()},
      {Step::proxy_acquire_completion, get(CounterPath::nic)},
      {Step::proxy_count_in_order, two_peers()},
      {Step::proxy_release_fault, failure()},
      {Step::proxy_release_fault, failure(CounterPath::gdrcopy), true},
      {Step::proxy_release_fault, failure(CounterPath::nic), true},
      {Step::proxy_acquire_fault, failure()},
      {Step::signal_after_payload, put_signal("put_signal.set", SignalOperation::set)},
  };
  std::vector<Check> mutants;
  for (const MutantRow& row : all) mutants.push_back(mutant_of(row));
  return mutants;
}

}  // namespace belfry::check
