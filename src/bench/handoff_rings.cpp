#include "bench/handoff_rings.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "belfry/proxy/idle.hpp"
#include "bench/kernels/handoff.hpp"

namespace belfry::bench {
namespace {

/// As many as a worker takes of a ring before it gives their slots back (ServiceOptions).
constexpr std::uint32_t kDescriptorsATurn = 64;
/// Empty rounds before the core is given away: longer than an enqueue takes, shorter than a slice of the
/// scheduler, for on a busy machine the producer may wait for this very core.
constexpr std::uint32_t kSpins = 1000;

/// One ring's end: `taken()` descriptors have come, of which `right` were the right ones.
struct DrainedRing {
  proxy::RingReader reader;
  std::uint64_t low;  ///< of every descriptor but for the parity
  std::uint64_t right = 0;

  /// \return whether there was one
  bool turn(std::uint64_t count) {
    std::uint32_t taken = 0;
    port::Vector16 descriptor;
    while (taken < kDescriptorsATurn && reader.next() < count && reader.take(descriptor)) {
      const std::uint64_t offset = handoff_offset(reader.next() - 1);
      right +=
          (descriptor.low & ~std::uint64_t{1}) == low && descriptor.high == (offset | offset << 32) ? 1 : 0;
      ++taken;
    }
    reader.give_back();
    return taken != 0;
  }
};

}  // namespace

HandoffRings::HandoffRings(KernelRunner& runner, std::uint32_t rings, std::uint32_t slots,
                           std::shared_ptr<host::QueueMemory> provider)
    : memory_(rings, slots, 0, std::move(provider)),
      states_(place_of<device::proxy::RingState>(
          runner, std::vector<device::proxy::RingState>(rings, memory_.first_state()))) {
  std::vector<device::proxy::Ring> table = memory_.rings();
  for (std::uint32_t r = 0; r < rings; ++r) table[r].state = states_.get() + r;
  rings_ = place_of<device::proxy::Ring>(runner, table);
  device::LocalWindow window;
  window.bytes = kHandoffWindowBytes;
  window_ = place_of<device::LocalWindow>(runner, {&window, 1});
  view_.pe_count = kHandoffPeer + 1;
  view_.ring_count = rings;
  view_.window_count = 1;
  view_.rings = rings_.get();
  view_.windows = window_.get();
}

Drain::Drain(const HandoffRings& rings, std::uint64_t count, std::uint32_t threads)
    : expected_(count * rings.view().ring_count) {
  for (std::uint32_t t = 0; t < threads; ++t)
    threads_.emplace_back([this, &rings, count, t, threads] { run(rings, count, t, threads); });
}

Drain::~Drain() {
  stop_.store(true, std::memory_order_release);
  join();
}

void Drain::join() {
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void Drain::run(const HandoffRings& rings, std::uint64_t count, std::uint32_t first, std::uint32_t step) {
  const std::uint64_t low = wire::proxy_descriptor(handoff_request(0), 0).low;
  std::vector<DrainedRing> ends;
  for (std::uint32_t r = first; r < rings.view().ring_count; r += step)
    ends.push_back({rings.memory().reader(r), low});
  proxy::Idler idler({.kind = proxy::IdlePolicy::Kind::yield, .spins = kSpins});
  const auto is_done = [&](const DrainedRing& end) { return end.reader.next() == count; };
  while (!stop_.load(std::memory_order_acquire) && !std::all_of(ends.begin(), ends.end(), is_done)) {
    bool moved = false;
    for (DrainedRing& end : ends) moved = end.turn(count) || moved;
    if (!moved) idler.rest();
  }
  for (const DrainedRing& end : ends) right_ += end.right;
}

bool Drain::is_right() {
  join();
  return right_ == expected_;
}

}  // namespace belfry::bench
