#include "host/device_tables.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "belfry/wire/wqe.hpp"
#include "host/queue_layout.hpp"

namespace belfry::host {

namespace {

std::size_t whole_pages(std::size_t bytes) {
  return std::max<std::size_t>((bytes + kPageBytes - 1) / kPageBytes, 1) * kPageBytes;
}

/// The largest inline payload of a WRITE: what the segment count and the queue leave beside the control and
/// address segments and the inline header.
std::uint32_t max_inline(std::uint32_t blocks) {
  const std::uint32_t segments = std::min(wire::kMaxSegments, blocks * wire::kSegmentsPerBlock);
  return (segments - 2) * wire::kSegmentBytes - static_cast<std::uint32_t>(sizeof(wire::InlineHeader));
}

/// Appends an array to an image of memory, from a cache line's start. \return its offset
template <class T>
std::size_t append(std::vector<std::byte>& image, std::span<const T> items) {
  const std::size_t at = (image.size() + kCacheLine - 1) / kCacheLine * kCacheLine;
  image.resize(at + items.size_bytes());
  if (!items.empty()) std::memcpy(image.data() + at, items.data(), items.size_bytes());
  return at;
}

}  // namespace

Placement resolve(Placement placement) {
  const std::shared_ptr<QueueMemory> host = host_queue_memory();
  for (MemoryPlace* place : {&placement.send_queue, &placement.completion_queue, &placement.record,
                             &placement.state, &placement.tables, &placement.doorbells}) {
    if (place->memory == nullptr) place->memory = host;
  }
  for (MemoryPlace* place :
       {&placement.send_queue, &placement.completion_queue, &placement.record, &placement.state})
    place->kind = kind_for(placement.tables, place->kind, place->memory->gpu());
  return placement;
}

device::MemoryKind kind_for(const MemoryPlace& tables, device::MemoryKind said, std::optional<int> gpu) {
  const std::optional<int> own = tables.memory->gpu();
  const bool another = said == device::MemoryKind::own && own && gpu && *own != *gpu;
  return another ? device::MemoryKind::peer : said;
}

device::QueueState initial_state(std::uint64_t first_index) {
  device::QueueState state{};
  state.reserved = first_index;
  state.published = first_index;
  state.goal = first_index;
  state.signaled_goal = first_index;
  state.consumer = first_index;
  return state;
}

DeviceTables::DeviceTables(const Placement& placement, const Windows& windows,
                           std::span<const std::unique_ptr<DevxQueue>> queues, std::uint32_t queues_a_peer,
                           std::uint64_t first_index, const DoorbellRouting& doorbells)
    : placement_(placement) {
  view_.pe = windows.pe();
  view_.pe_count = windows.pe_count();
  view_.queues_a_peer = queues_a_peer;
  place_states(queues, first_index);
  describe_queues(queues, queues_a_peer, doorbells);
  sink_ = Memory::allocate_from(windows.domain(), *placement_.tables.memory,
                                queues.size() * sizeof(std::uint64_t), Access::local_write);
  place_tables(windows);
}

void DeviceTables::place_states(std::span<const std::unique_ptr<DevxQueue>> queues,
                                std::uint64_t first_index) {
  QueueMemory& memory = *placement_.state.memory;
  const std::vector<device::QueueState> image(queues.size(), initial_state(first_index));
  const std::size_t bytes = image.size() * sizeof(device::QueueState);
  states_ = memory.allocate(whole_pages(bytes));
  memory.write(states_.get(), image.data(), bytes);
}

void DeviceTables::describe_queues(std::span<const std::unique_ptr<DevxQueue>> queues,
                                   std::uint32_t queues_a_peer, const DoorbellRouting& doorbells) {
  auto* states = static_cast<device::QueueState*>(states_.get());
  for (std::size_t slot = 0; slot < queues.size(); ++slot) {
    device::SendQueue& q = queues_.emplace_back();
    q.peer = static_cast<std::uint32_t>(slot / queues_a_peer);
    if (queues[slot] == nullptr) continue;
    const DevxQueueView& view = queues[slot]->view();
    const CompletionRing& ring = view.send_completions;
    q.blocks = view.send_queue;
    q.record = &view.record->send;
    q.doorbell = doorbells.doorbell(slot);
    q.forwarder = doorbells.words();
    q.completions = reinterpret_cast<const std::byte*>(ring.entries);
    q.state = states + slot;
    q.qpn = view.qpn;
    q.log_blocks = static_cast<std::uint8_t>(std::countr_zero(view.send_blocks));
    q.log_completions = ring.layout == CompletionLayout::collapsed
                            ? 0
                            : static_cast<std::uint8_t>(std::countr_zero(ring.count));
    q.doorbell_mode = view.doorbell;
    q.completion_layout = ring.layout;
    q.blocks_kind = placement_.send_queue.kind;
    q.record_kind = placement_.record.kind;
    q.completions_kind = placement_.completion_queue.kind;
    q.owns_register = view.owns_register;
    view_.max_inline = max_inline(view.send_blocks);
  }
}

void DeviceTables::place_tables(const Windows& windows) {
  const std::uint32_t sink = windows.count();
  std::vector<device::LocalWindow> locals;
  std::vector<device::RemoteWindow> remotes;
  for (std::uint32_t window = 0; window < sink; ++window) {
    locals.push_back(windows.local_entry(window));
    for (std::uint32_t pe = 0; pe < view_.pe_count; ++pe) remotes.push_back(windows.remote_entry(window, pe));
  }
  locals.push_back({reinterpret_cast<std::uint64_t>(sink_->data()), sink_->bytes(), Be32(sink_->lkey()), 0});
  // Nobody writes to a peer's sink; its keys are none that a device hands out.
  remotes.resize(remotes.size() + view_.pe_count, {0, Be32(0), 0});

  std::vector<std::byte> image;
  const std::size_t queues_at = append<device::SendQueue>(image, queues_);
  const std::size_t locals_at = append<device::LocalWindow>(image, locals);
  const std::size_t remotes_at = append<device::RemoteWindow>(image, remotes);
  QueueMemory& memory = *placement_.tables.memory;
  tables_ = memory.allocate(whole_pages(image.size()));
  memory.write(tables_.get(), image.data(), image.size());

  const auto* base = static_cast<const std::byte*>(tables_.get());
  view_.queues = reinterpret_cast<const device::SendQueue*>(base + queues_at);
  view_.windows = reinterpret_cast<const device::LocalWindow*>(base + locals_at);
  view_.remotes = reinterpret_cast<const device::RemoteWindow*>(base + remotes_at);
  // Callers' places are checked against the count, so that none of them is the sink: a peer's would fail the
  // queue.
  view_.window_count = sink;
  view_.sink = {sink, 0};
}

device::Fault DeviceTables::fault(std::size_t slot) const {
  const auto* state = static_cast<const std::byte*>(states_.get()) + slot * sizeof(device::QueueState);
  QueueMemory& memory = *placement_.state.memory;
  const std::uint64_t word = memory.load(state + offsetof(device::QueueState, fault));
  const std::uint64_t consumer = memory.load(state + offsetof(device::QueueState, consumer));
  return device::decode_fault(word, consumer, queues_[slot].qpn);
}

}  // namespace belfry::host
