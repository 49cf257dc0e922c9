#include "proxy/ring_memory.hpp"

#include <bit>
#include <new>

namespace belfry::proxy {

using device::proxy::WorkerWords;

RingMemory::RingMemory(std::uint32_t rings, std::uint32_t slots, std::uint64_t first,
                       std::shared_ptr<host::QueueMemory> provider)
    : first_(first), rings_(rings) {
  const std::size_t slot_bytes = sizeof(port::Vector16) * slots;
  // A line each: what the worker writes, and what it writes less often.
  const std::size_t ring_bytes = slot_bytes + sizeof(WorkerWords) + 64;
  if (provider == nullptr) provider = host::host_queue_memory();
  memory_ = provider->allocate((ring_bytes * rings + 4095) / 4096 * 4096);
  auto* at = static_cast<std::byte*>(memory_.get());
  for (std::uint32_t r = 0; r < rings; ++r, at += ring_bytes) {
    device::proxy::Ring& ring = rings_[r];
    ring.slots = reinterpret_cast<port::Vector16*>(at);
    words_.push_back(new (at + slot_bytes) WorkerWords{first, 0, 0, 0, 0, 0, {}});
    taken_.push_back(new (at + slot_bytes + sizeof(WorkerWords)) std::uint64_t(first));
    ring.taken = taken_.back();
    ring.words = words_.back();
    ring.log_slots = static_cast<std::uint32_t>(std::countr_zero(slots));
    // No slot may hold the parity of the lap that begins.
    for (std::uint32_t i = 0; i < slots; ++i)
      ring.slots[i] = {wire::proxy_parity((first >> ring.log_slots) + 1), 0};
  }
}

}  // namespace belfry::proxy
