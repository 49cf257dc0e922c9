#pragma once
/// \file
/// mini-proxy's reservation and stores, with time between them. Only for rings that producers share.

#include "belfry/device/proxy.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// Each thread reserves, waits, and stores its descriptors one by one, the last first. Its puts count up in a
/// word of its own; every fourth request adds 1 to a word of all instead, in two descriptors.
template <class Policy>
struct DelayedDescriptors {
  device::proxy::ProxyView view;
  std::uint32_t peer = 1;
  device::Place words;    ///< at the peer, 8 B a thread
  device::Place total;    ///< at the peer
  device::Place results;  ///< here, 8 B a thread
  std::uint32_t rounds = 0;
  std::uint32_t most_turns = 0;  ///< of each delay
  std::uint64_t seed = 0;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    const std::uint32_t me = grid_thread();
    Report& report = reports[me];
    device::proxy::Channel<Policy> channel(view, peer);
    std::uint64_t random = mixed(seed + me + 1);
    for (std::uint32_t i = 1; i <= rounds; ++i) {
      random = mixed(random + i);
      if (!report.note(i, enqueue(channel.ring(), i % 4 == 0 ? add(me) : put(me, i), random))) return;
    }
    report.note(rounds + 1, channel.flush(device::Thread{}, kPatient));
  }

 private:
  BELFRY_FN wire::ProxyRequest put(std::uint32_t me, std::uint64_t value) const {
    wire::ProxyRequest r;
    r.operation = wire::ProxyOperation::put_value;
    r.peer = peer;
    r.remote_window = words.window;
    r.remote_offset = words.offset + me * std::uint64_t{8};
    r.bytes = 8;
    r.value = value;
    return r;
  }
  BELFRY_FN wire::ProxyRequest add(std::uint32_t me) const {
    wire::ProxyRequest r;
    r.operation = wire::ProxyOperation::fetch_add;
    r.peer = peer;
    r.remote_window = total.window;
    r.remote_offset = total.offset;
    r.local_window = results.window;
    r.local_offset = results.offset + me * std::uint64_t{8};
    r.bytes = 8;
    r.value = 1;
    return r;
  }
  BELFRY_FN device::Status enqueue(const device::proxy::Ring& ring, const wire::ProxyRequest& request,
                                   std::uint64_t random) const {
    device::proxy::Producer producer;
    const std::uint32_t count = wire::proxy_descriptors(request);
    const auto slots = device::proxy::reserve<Policy::protocol>(ring, producer, count, kPatient, 0);
    if (slots.status != device::Status::done) return slots.status;
    const std::uint64_t mask = (std::uint64_t{1} << ring.log_slots) - 1;
    for (std::uint32_t left = count; left-- > 0; random >>= 16) {
      delay(random);
      const std::uint64_t index = slots.first + left;
      port::Vector16 descriptor = wire::proxy_descriptor(request, left);
      descriptor.low |= wire::proxy_parity(index >> ring.log_slots);
      port::store_16(ring.slots + (index & mask), descriptor);
    }
    return device::Status::done;
  }
  BELFRY_FN void delay(std::uint64_t random) const {
    if (most_turns == 0 || (random & 3) == 0) return;
    const std::uint64_t turns = (random >> 8 & 0xff) % most_turns;
    for (std::uint64_t i = 0; i < turns; ++i)
      static_cast<void>(port::poll<port::Scope::gpu>(&view.rings[0].log_slots));
  }
};

}  // namespace belfry::conformance
