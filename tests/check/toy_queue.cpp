#include "check/toy_queue.hpp"

#include <fmt/format.h>

#include "belfry/port/memory.hpp"
#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/wqe.hpp"
#include "check/nic.hpp"

namespace belfry::check {
namespace {

using device::DoorbellMode;
using device::Ordering;

constexpr std::uint32_t kQpn = 0x1234;
constexpr unsigned kOperations = 2;

struct Toy {
  std::byte* blocks = nullptr;
  Be32* record = nullptr;
  std::uint64_t* doorbell = nullptr;
  std::byte* completions = nullptr;
  std::uint64_t* source = nullptr;
  std::uint64_t* target = nullptr;
};

/// W: control, remote address, data.
void write_wqe(const Toy& toy, std::uint64_t index) {
  std::byte* at = toy.blocks + index * wire::kBlockBytes;
  const auto address = [](const void* p) { return Be64(reinterpret_cast<std::uintptr_t>(p)); };
  port::store_segment(at, port::as_vector(wire::make_control(wire::WqeOpcode::rdma_write, index, kQpn, 3,
                                                             wire::kWqeCompletionAlways)));
  port::store_segment(at + 16, port::as_vector(wire::RemoteAddressSegment{address(toy.target + 2 * index),
                                                                          Be32(0), Be32(0)}));
  port::store_segment(at + 32,
                      port::as_vector(wire::DataSegment{Be32(8), Be32(0), address(toy.source + 2 * index)}));
}

void order(Ordering ordering) {
  switch (ordering) {
    case Ordering::gpu_fence:
    case Ordering::gpu_fence_record:
      return port::fence<Scope::gpu>();
    case Ordering::threadfence:
      return port::thread_fence();
    case Ordering::system_fence:
      return port::fence<Scope::system>();
    default:
      return;
  }
}

/// R and D behind W, as design.md lists it.
void ring(const Toy& toy, std::uint64_t producer, Ordering ordering, bool has_record) {
  const std::uint64_t bell =
      wire::send_doorbell(Be32(static_cast<std::uint32_t>(producer & 0xffff) << 8), Be32(kQpn << 8));
  const Be32 word = wire::record_word(producer);
  if (ordering == Ordering::gpu_release) {
    if (has_record) port::store_release<Scope::gpu>(toy.record, word);
    port::store_doorbell_release<Scope::gpu>(toy.doorbell, bell);
    return;
  }
  if (ordering == Ordering::system_release) {
    if (has_record) port::store_release<Scope::system>(toy.record, word);
    port::store_doorbell_release<Scope::system>(toy.doorbell, bell);
    return;
  }
  if (has_record) {
    if (ordering != Ordering::gpu_fence) order(ordering);
    port::store<Scope::system>(toy.record, word);
  }
  order(ordering);
  port::store_doorbell(toy.doorbell, bell);
}

void wait_completion(const Toy& toy, std::uint64_t entry) {
  const auto* tail =
      reinterpret_cast<const std::uint64_t*>(toy.completions + (entry + 1) * wire::kCqeBytes) - 1;
  while (!wire::cqe_ready(static_cast<std::uint8_t>(port::poll<Scope::system>(tail) >> 56), entry, 2)) {
  }
}

void produce(const Toy& toy, Ledger& ledger, const ToyConfiguration& c) {
  std::size_t numbers[kOperations];
  for (std::uint64_t i = 0; i < kOperations; ++i) {
    numbers[i] = ledger.intend("WRITE " + std::to_string(i), wire::WqeOpcode::rdma_write,
                               reinterpret_cast<std::uintptr_t>(toy.target + 2 * i), 0x100 + i);
    port::store<Scope::block>(toy.source + 2 * i, 0x100 + i);
    write_wqe(toy, i);
    ring(toy, i + 1, c.ordering, c.mode == DoorbellMode::record);
    ledger.posted(numbers[i], i);
  }
  for (std::uint64_t i = 0; i < kOperations; ++i) {
    wait_completion(toy, i);
    ledger.completed(numbers[i]);
  }
}

}  // namespace

bool toy_is_safe(const ToyConfiguration& c) {
  if (c.ordering == Ordering::none) return false;
  if (c.ordering == Ordering::system_release || c.ordering == Ordering::system_fence) return true;
  const bool has_record = c.mode == DoorbellMode::record;
  const bool own = c.blocks == MemoryKind::gpu && (!has_record || c.record == MemoryKind::gpu) &&
                   c.payload == MemoryKind::gpu && !c.peer_payload;
  const bool needs_a2 = c.ordering == Ordering::gpu_fence && has_record;
  return own && c.assumptions.own_memory && (!needs_a2 || c.assumptions.doorbell_only);
}

std::vector<Check> toy_checks() {
  std::vector<ToyConfiguration> all;
  for (int o = 0; o <= static_cast<int>(Ordering::system_fence); ++o) {
    for (DoorbellMode mode : {DoorbellMode::record, DoorbellMode::no_record}) {
      ToyConfiguration c;
      c.ordering = static_cast<Ordering>(o);
      c.mode = mode;
      for (int bits = 0; bits < 16; ++bits) {
        c.assumptions = {(bits & 1) == 0, (bits & 2) == 0};
        c.blocks = (bits & 4) == 0 ? MemoryKind::gpu : MemoryKind::host;
        c.record = (bits & 8) == 0 ? MemoryKind::gpu : MemoryKind::host;
        if (mode == DoorbellMode::record || c.record == MemoryKind::gpu) all.push_back(c);
      }
      c.assumptions = {};
      c.blocks = c.record = MemoryKind::gpu;
      c.payload = MemoryKind::host;
      all.push_back(c);
      c.payload = MemoryKind::gpu;
      c.peer_payload = true;
      all.push_back(c);
    }
  }
  std::vector<Check> checks;
  for (const ToyConfiguration& c : all) {
    Check check;
    check.scenario = toy_scenario(c);
    check.holds = toy_is_safe(c);
    checks.push_back(std::move(check));
  }
  return checks;
}

Scenario toy_scenario(const ToyConfiguration& c) {
  Scenario scenario;
  const auto kind = [](MemoryKind k) { return k == MemoryKind::gpu ? "gpu" : "host"; };
  scenario.name =
      fmt::format("toy.{}.{}.blocks_{}.record_{}.payload_{}{}{}", device::ordering_name(c.ordering),
                  c.mode == DoorbellMode::record ? "record" : "no_record", kind(c.blocks), kind(c.record),
                  c.peer_payload ? "peer" : kind(c.payload), c.assumptions.own_memory ? "" : ".no_a1",
                  c.assumptions.doorbell_only ? "" : ".no_a2");
  scenario.settings.assumptions = c.assumptions;
  scenario.build = [c](World& world) {
    Toy& toy = world.keep<Toy>();
    toy.blocks = world.make<std::byte>("blocks", 4 * wire::kBlockBytes, c.blocks);
    toy.record = world.make<Be32>("record", 2, c.record, 0, 4);
    toy.doorbell = world.make<std::uint64_t>("doorbell", 2, MemoryKind::registers);
    toy.completions = world.make<std::byte>("completions", 4 * wire::kCqeBytes, c.blocks);
    toy.source = world.make<std::uint64_t>("source", 2 * kOperations, c.payload, c.peer_payload ? 1 : 0);
    toy.target = world.make<std::uint64_t>("target", 2 * kOperations, MemoryKind::gpu, 7);
    for (unsigned i = 0; i < 4; ++i)
      toy.completions[(i + 1) * wire::kCqeBytes - 1] = std::byte{wire::kCqeNeverWritten};
    Ledger& ledger = world.keep<Ledger>(world);
    NicQueue queue;
    queue.blocks = toy.blocks;
    queue.log_blocks = 2;
    queue.doorbell = toy.doorbell;
    queue.record = c.mode == DoorbellMode::record ? toy.record + 1 : nullptr;
    queue.completions = toy.completions;
    queue.log_completions = 2;
    queue.qpn = kQpn;
    toy.record += 1;  // the send word
    world.add_agent("producer", gpu_thread(0, 0), [&toy, &ledger, c] { produce(toy, ledger, c); });
    world.keep<Nic>(world, queue, ledger);
    world.at_end([&ledger] { ledger.check_all_executed(); });
  };
  return scenario;
}

}  // namespace belfry::check
