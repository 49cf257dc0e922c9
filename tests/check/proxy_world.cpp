#include "check/proxy_world.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/index.hpp"

namespace belfry::check {

using device::gda::CqeTail;
using proxy::Work;

CheckSubmitter::CheckSubmitter(std::vector<const device::SendQueue*> queues) {
  for (const device::SendQueue* queue : queues)
    queues_.push_back({queue, 0, 0, std::vector<std::uint64_t>(std::size_t{1} << queue->log_blocks)});
}

std::uint32_t CheckSubmitter::depth() const { return 1u << queues_[0].queue->log_blocks; }

void CheckSubmitter::build_one(const device::SendQueue& queue, std::uint64_t index, const Work& work) {
  using namespace device::gda;
  const Remote remote{work.remote, Be32(work.rkey)};
  const Local local{work.local, Be32(work.lkey)};
  switch (work.kind) {
    case Work::Kind::write:
      return build(queue, index, PointerWrite{remote, local, work.bytes}, work.signaled);
    case Work::Kind::write_value:
      return build(queue, index, ValueWrite{remote, work.value, work.bytes}, work.signaled);
    case Work::Kind::read:
      return build(queue, index, Read{remote, local, work.bytes}, work.signaled);
    case Work::Kind::fetch_add:
      return build(queue, index, FetchAdd{remote, local, work.value}, work.signaled);
    case Work::Kind::compare_swap:
      return build(queue, index, CompareSwap{remote, local, work.value, work.second_value}, work.signaled);
  }
}

proxy::PostResult CheckSubmitter::post(std::uint32_t number, std::span<const Work> chain) {
  Queue& q = queues_[number];
  for (const Work& work : chain) {
    q.ids[q.producer % q.ids.size()] = work.id;
    build_one(*q.queue, q.producer++, work);
  }
  port::store_release<Scope::system>(q.queue->record, wire::record_word(q.producer));
  port::store_doorbell(q.queue->doorbell,
                       wire::send_doorbell(Be32(static_cast<std::uint32_t>(q.producer & 0xffff) << 8),
                                           Be32(q.queue->qpn << 8)));
  return {chain.size(), 0};
}

/// One entry of each queue at most.
std::size_t CheckSubmitter::poll(std::span<proxy::WorkCompletion> out) {
  std::size_t count = 0;
  for (std::uint32_t number = 0; number < queues_.size(); ++number) {
    Queue& q = queues_[number];
    const std::uint64_t mask = (std::uint64_t{1} << q.queue->log_completions) - 1;
    const std::byte* const cqe = q.queue->completions + (q.entry & mask) * wire::kCqeBytes;
    // With an acquire, as libmlx5 has a barrier for loads here: nothing is released by it.
    const CqeTail tail{do_load(cqe + CqeTail::kOffset, 8, Scope::system, true, true)};
    if (!wire::cqe_ready(tail.op_own(), q.entry, q.queue->log_completions)) continue;
    ++q.entry;
    proxy::WorkCompletion& c = out[count++];
    c = {};
    c.queue = number;
    c.id = q.ids[tail.counter() % q.ids.size()];
    if (!tail.is_error()) continue;
    const auto word = port::load<Scope::system>(reinterpret_cast<const std::uint64_t*>(cqe) + 6);
    c.vendor = static_cast<std::uint8_t>(word >> 48);
    c.syndrome = static_cast<wire::Syndrome>(word >> 56);
    c.qpn = q.queue->qpn;
  }
  return count;
}

CounterQueue::CounterQueue(World& world, void* words, bool relaxed, int device)
    : ledger_(world), words_(reinterpret_cast<std::uintptr_t>(words)) {
  constexpr std::uint32_t kQpn = 0x77, kLogBlocks = 3;
  queue_.blocks = world.make<std::byte>("counter blocks", wire::kBlockBytes << kLogBlocks, MemoryKind::host);
  auto* const record = world.make<Be32>("counter record", 2, MemoryKind::host, 0, 4);
  queue_.record = record + 1;
  queue_.doorbell = world.make<std::uint64_t>("counter doorbell", 1, MemoryKind::registers);
  auto* const completions = world.make<std::byte>("counter completions", wire::kCqeBytes, MemoryKind::host);
  queue_.completions = completions;
  queue_.qpn = kQpn;
  queue_.log_blocks = kLogBlocks;
  NicQueue nic;
  nic.blocks = queue_.blocks;
  nic.log_blocks = kLogBlocks;
  nic.doorbell = queue_.doorbell;
  nic.record = queue_.record;
  nic.completions = completions;
  nic.collapsed = true;
  nic.qpn = kQpn;
  NicBehaviour behaviour;
  behaviour.to_itself = true;
  behaviour.device = device;
  if (relaxed) behaviour.relaxed.emplace_back(words, sizeof(device::proxy::WorkerWords));
  world.keep<Nic>(world, nic, ledger_, behaviour, "counter nic");
  world.at_end([this] { ledger_.check_all_executed(); });
  submitter_ = std::make_unique<CheckSubmitter>(std::vector<const device::SendQueue*>{&queue_});
}

bool CounterQueue::write(std::size_t offset, std::uint64_t value) {
  Work work;
  work.kind = Work::Kind::write_value;
  work.remote = words_ + offset;
  work.value = value;
  work.bytes = 8;
  ledger_.intend(fmt::format("count of {}", value), wire::WqeOpcode::rdma_write, work.remote, value);
  return submitter_->post(0, std::span(&work, 1)).accepted == 1;
}

std::unique_ptr<proxy::Counter> ProxyWorld::make_counter(World& world, device::proxy::WorkerWords* words,
                                                         const ProxySettings& s) {
  constexpr std::uint64_t kNoBeat = ~std::uint64_t{0};
  if (s.counter == proxy::CounterPath::host) return std::make_unique<proxy::MappedCounter>(words);
  if (s.counter == proxy::CounterPath::gdrcopy)
    return std::make_unique<proxy::CombinedCounter>(words, kNoBeat);
  auto& queue = world.keep<CounterQueue>(world, words, s.relaxed_counter, peers[0]->nic->requester());
  return std::make_unique<proxy::NicCounter>(
      [&queue](std::size_t offset, std::uint64_t value) { return queue.write(offset, value); }, 0, kNoBeat);
}

ProxyWorld::ProxyWorld(World& world, const ProxySettings& s) {
  GdaSettings settings;
  settings.payload = s.payload;
  settings.blocks = settings.record = settings.completions = device::MemoryKind::host;
  for (unsigned p = 0; p < s.peers; ++p) {
    settings.fails_at = p == 0 ? s.fails_at : std::nullopt;
    peers.push_back(
        &world.keep<GdaWorld>(world, settings, device::DoorbellMode::record, device::CompletionLayout::ring));
  }
  ring.slots = world.make<port::Vector16>("slots", std::size_t{1} << s.log_slots, MemoryKind::host);
  auto* const taken = world.make<std::uint64_t>("taken", 1, MemoryKind::host);
  auto* const words = world.make<device::proxy::WorkerWords>(
      "words", 1, s.counter == proxy::CounterPath::host ? MemoryKind::host : MemoryKind::gpu, 0);
  ring.state = world.make<device::proxy::RingState>("ring state", 1, MemoryKind::gpu, 0);
  using Words = device::proxy::WorkerWords;
  world.describe_fields(words, sizeof(Words), 1,
                        {{offsetof(Words, completed), "completed"},
                         {offsetof(Words, fault), "fault"},
                         {offsetof(Words, heartbeat), "heartbeat"},
                         {offsetof(Words, fault_index), "fault_index"},
                         {offsetof(Words, fault_queue), "fault_queue"},
                         {offsetof(Words, dropped_from), "dropped_from"}});
  world.describe_fields(ring.state, sizeof(device::proxy::RingState), 1, {{0, "reserved"}, {8, "taken"}});
  ring.taken = taken;
  ring.words = words;
  ring.log_slots = s.log_slots;

  const device::EndpointView& windows = peers[0]->view;
  view.pe = s.peers;  // none of its own peers
  view.pe_count = s.peers;
  view.ring_count = 1;
  view.window_count = windows.window_count;
  view.rings = &ring;
  view.windows = windows.windows;

  proxy::Routes routes;
  routes.windows.assign(windows.windows, windows.windows + windows.window_count);
  for (unsigned w = 0; w < windows.window_count; ++w)
    for (const GdaWorld* peer : peers) routes.remotes.push_back(peer->remotes[w]);
  std::vector<const device::SendQueue*> queues;
  for (unsigned p = 0; p < s.peers; ++p) {
    routes.queues.push_back(p);
    queues.push_back(&peers[p]->queue);
  }
  routes.sink = windows.windows[2].address;
  routes.sink_lkey = 1;
  proxy::ServiceOptions options;
  options.chain = s.chain;
  submitter = std::make_unique<CheckSubmitter>(std::move(queues));
  service = std::make_unique<proxy::RingService>(proxy::RingReader(ring.slots, ring.log_slots, taken),
                                                 std::move(routes), make_counter(world, words, s), options);
  // src/proxy's Worker, without its thread and its heartbeat. It is the poll of the completion queue that
  // tells the checker of a loop that waits: a slot is looked at again for another lap, which is not the same
  // question.
  world.add_daemon("worker", cpu_thread(), [this] {
    for (;;) {
      service->serve(*submitter);
      std::array<proxy::WorkCompletion, 4> completions;
      const std::size_t count = submitter->poll(completions);
      for (std::size_t i = 0; i < count; ++i) service->complete(*submitter, completions[i]);
    }
  });
}

}  // namespace belfry::check
