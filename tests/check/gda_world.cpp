#include "check/gda_world.hpp"

#include <cstring>

#include "host/doorbell_relay.hpp"

namespace belfry::check {
namespace {

constexpr std::uint32_t kQpn = 0x4321;
constexpr int kHere = 0, kThere = 1, kElsewhere = 2;  // GPUs

template <class T>
T* make(World& world, const char* name, std::size_t count, device::MemoryKind kind, unsigned granule = 8) {
  return world.make<T>(name, count, kind == device::MemoryKind::host ? MemoryKind::host : MemoryKind::gpu,
                       kind == device::MemoryKind::peer ? kElsewhere : kHere, granule);
}

/// What a NIC left in a ring that it has gone around once.
void fill_first_lap(std::byte* completions, std::size_t entries, std::uint64_t first_index) {
  for (std::size_t e = 0; e < entries; ++e) {
    wire::Cqe cqe{};
    cqe.wqe_counter = Be16(static_cast<std::uint16_t>(first_index - entries + e));
    cqe.op_own = wire::make_op_own(wire::CqeOpcode::requester, false, false);
    std::memcpy(completions + e * wire::kCqeBytes, &cqe, sizeof cqe);
  }
}

}  // namespace

GdaWorld::GdaWorld(World& w, const GdaSettings& s, device::DoorbellMode mode, device::CompletionLayout layout)
    : words_apart(s.words_apart), world(w), ledger(w) {
  const bool collapsed = layout == device::CompletionLayout::collapsed;
  const unsigned log_completions = collapsed ? 0 : s.log_completions;
  const std::size_t blocks = std::size_t{1} << s.log_blocks, entries = std::size_t{1} << log_completions;
  queue.blocks = make<std::byte>(w, "blocks", blocks * wire::kBlockBytes, s.blocks);
  Be32* record = make<Be32>(w, "record", 2, s.record, 4);
  auto* bell = w.make<std::uint64_t>("doorbell", 1, MemoryKind::registers);
  auto* completions = make<std::byte>(w, "completions", entries * wire::kCqeBytes, s.completions);
  for (std::size_t e = 0; e < entries; ++e)
    completions[(e + 1) * wire::kCqeBytes - 1] = std::byte{wire::kCqeNeverWritten};
  if (s.second_lap) fill_first_lap(completions, entries, s.first_index);
  queue.state = w.make<device::QueueState>("state", 1, MemoryKind::gpu, kHere, 4);
  queue.state->reserved = queue.state->published = queue.state->goal = s.first_index;
  queue.state->signaled_goal = queue.state->consumer = s.first_index;
  queue.state->cq_consumer = s.second_lap ? entries : 0;
  if (s.unseen_completion) {
    fill_first_lap(completions, 1, s.first_index);
    queue.state->consumer = s.first_index - 1;
  }
  record[1] = wire::record_word(s.first_index);
  *bell = wire::send_doorbell(Be32(static_cast<std::uint32_t>(s.first_index & 0xffff) << 8), Be32(kQpn << 8));
  name_fields(blocks, entries, record, completions);
  queue.record = record + 1;
  queue.doorbell = bell;
  queue.completions = completions;
  queue.qpn = kQpn;
  queue.log_blocks = static_cast<std::uint8_t>(s.log_blocks);
  queue.log_completions = static_cast<std::uint8_t>(log_completions);
  queue.doorbell_mode = mode;
  queue.completion_layout = layout;

  for (const char* name : {"payload", "signals", "sink"}) {
    auto* here = make<std::uint64_t>(w, name, 2 * kWords, s.payload);
    auto* there = w.make<std::uint64_t>(std::string("peer ") + name, 2 * kWords, MemoryKind::gpu, kThere);
    windows.push_back({reinterpret_cast<std::uintptr_t>(here), 16 * kWords, Be32(1), 0});
    remotes.push_back({reinterpret_cast<std::uintptr_t>(there), Be32(1), 0});
  }
  view.pe_count = view.queues_a_peer = 1;
  view.window_count = static_cast<std::uint32_t>(windows.size());
  view.queues = &queue;
  view.windows = windows.data();
  view.remotes = remotes.data();
  view.max_message = 8;
  view.max_inline = 32;
  view.sink = {2, 0};

  NicQueue end;
  end.blocks = queue.blocks;
  end.log_blocks = s.log_blocks;
  end.doorbell = bell;
  end.record = mode == device::DoorbellMode::record ? queue.record : nullptr;
  end.completions = completions;
  end.log_completions = log_completions;
  end.collapsed = collapsed;
  end.qpn = kQpn;
  end.first_index = s.first_index;
  end.first_completion = queue.state->cq_consumer;
  NicBehaviour behaviour;
  behaviour.fails_at = s.fails_at;
  if (s.relaxed_window) behaviour.relaxed.emplace_back(remote(word(0)), 16 * kWords);
  nic = &w.keep<Nic>(w, end, ledger, behaviour);
  if (s.assisted) add_forwarder();
  w.at_end([this] { ledger.check_all_executed(); });
}

/// For traces.
void GdaWorld::name_fields(std::size_t blocks, std::size_t entries, const Be32* record,
                           const std::byte* completions) {
  using State = device::QueueState;
  world.describe_fields(queue.state, sizeof(State), 1,
                        {{offsetof(State, reserved), "reserved"},
                         {offsetof(State, published), "published"},
                         {offsetof(State, goal), "goal"},
                         {offsetof(State, signaled_goal), "signaled_goal"},
                         {offsetof(State, lock), "lock"},
                         {offsetof(State, consumer), "consumer"},
                         {offsetof(State, cq_consumer), "cq_consumer"},
                         {offsetof(State, fault), "fault"}});
  world.describe_fields(queue.blocks, wire::kBlockBytes, blocks,
                        {{0, "control"}, {16, "remote"}, {32, "data"}});
  world.describe_fields(record, 8, 1, {{0, "receive"}, {4, "send"}});
  world.describe_fields(completions, wire::kCqeBytes, entries,
                        {{0, "head"}, {48, "syndrome"}, {device::gda::CqeTail::kOffset, "tail"}});
}

void GdaWorld::add_forwarder() {
  auto* const word = world.make<std::uint64_t>("doorbell word", 1, MemoryKind::host);
  queue.forwarder = world.make<device::ForwarderWords>("forwarder words", 1, MemoryKind::host);
  auto& relay = world.keep<host::DoorbellRelay>(std::vector<host::DoorbellLine>{{word, queue.doorbell}});
  auto& bell = world.keep<host::RegisterBell>();
  queue.doorbell = word;
  // src/host's DoorbellForwarder, without its thread and its heartbeat. A look by eyes of its own, whose
  // knowledge is the relay's in nothing, tells the checker that this is a loop that waits.
  const int eyes = world.add_port("forwarder.eyes", cpu_thread());
  world.add_daemon("forwarder", cpu_thread(), [this, word, eyes, &relay, &bell] {
    const auto here = [] [[gnu::noinline]] { return __builtin_return_address(0); };
    for (;;) {
      world.load(word, 8, {Scope::system, true, false, false}, true, {eyes, false}, here());
      relay.relay(bell);
    }
  });
}

std::uint64_t* GdaWorld::local(device::Place place) const {
  return reinterpret_cast<std::uint64_t*>(windows[place.window].address + place.offset);
}
std::uint64_t* GdaWorld::remote(device::Place place) const {
  return reinterpret_cast<std::uint64_t*>(remotes[place.window].address + place.offset);
}

}  // namespace belfry::check
