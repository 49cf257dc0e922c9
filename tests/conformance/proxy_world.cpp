#include "conformance/proxy_world.hpp"

#include <algorithm>

namespace belfry::conformance {

namespace {

proxy::EndpointOptions options_of(const WorldOptions& options) {
  const host::DeviceEndpointOptions& from = options.endpoint;
  proxy::EndpointOptions to;
  to.rings = static_cast<std::uint32_t>(from.queues_a_peer);
  to.workers = std::min(to.rings, 2u);
  to.slots = from.blocks;
  to.send_depth = 64;
  to.self_queues = from.self_queues;
  to.first_index = from.first_index;
  to.max_message = from.max_message.value_or(0);
  to.connection = from.connection;
  to.timeout = from.timeout;
  // The tests' machine has few cores, and NICs, lanes and workers all want one.
  to.pin = false;
  to.idle.spins = 100;
  return to;
}

}  // namespace

ProxyWorld::ProxyWorld(const WorldOptions& options, const device::Requirements&) {
  endpoints_.resize(static_cast<std::size_t>(options.pes));
  make(options.pes, [&](std::size_t pe, host::Bootstrap& bootstrap) {
    const host::ProtectionDomain domain(host::Context::open(options.endpoint.context));
    const host::Windows windows(bootstrap, domain, windows_of(options), options.endpoint.timeout);
    endpoints_[pe] = std::make_unique<proxy::Endpoint>(bootstrap, windows, options_of(options));
    return windows;
  });
}

Posted ProxyWorld::posted(std::uint32_t pe, std::uint32_t, std::uint32_t ring) const {
  const device::proxy::Ring& r = view(pe).rings[ring];
  // A descriptor is stored before whoever reserved for it returns.
  return {r.state->reserved, r.state->reserved, port::load_acquire<port::Scope::system>(&r.words->completed),
          endpoint(pe).fault_word(ring)};
}

ProxyWorld::Muted ProxyWorld::mute(std::uint32_t pe, std::uint32_t) const { return Muted(view(pe)); }

ProxyWorld::Muted::Muted(const device::proxy::ProxyView& view)
    : view_(view), real_(view.rings[0]), first_(real_.state->reserved), shadow_(std::make_unique<Shadow>()) {
  shadow_->ring = real_;
  shadow_->taken = first_;
  shadow_->slots.resize(std::size_t{1} << real_.log_slots);
  shadow_->ring.slots = shadow_->slots.data();
  shadow_->ring.taken = &shadow_->taken;
  view_.rings = &shadow_->ring;
  view_.ring_count = 1;
}

void ProxyWorld::Muted::ring() const {
  const std::uint64_t mask = shadow_->slots.size() - 1;
  for (std::uint64_t i = first_; i < real_.state->reserved; ++i)
    port::store_16(real_.slots + (i & mask), shadow_->slots[i & mask]);
}

}  // namespace belfry::conformance
