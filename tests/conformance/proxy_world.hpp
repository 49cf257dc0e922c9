#pragma once
/// \file
/// mini-proxy's world: rings and workers on every PE, on libibverbs.

#include "belfry/device/proxy.hpp"
#include "belfry/proxy/endpoint.hpp"
#include "conformance/world.hpp"

namespace belfry::conformance {

class ProxyWorld : public WorldBase {
 public:
  class Muted;

  /// Takes what has a meaning here of the options of a device endpoint: queues to each peer are rings, and
  /// their blocks are slots.
  ProxyWorld(const WorldOptions& options, const device::Requirements&);

  proxy::Endpoint& endpoint(std::uint32_t pe) const { return *endpoints_[pe]; }
  const device::proxy::ProxyView& view(std::uint32_t pe) const { return endpoints_[pe]->view(); }
  /// Of a ring, whichever the peer.
  Posted posted(std::uint32_t pe, std::uint32_t peer, std::uint32_t ring = 0) const;
  /// Ends a PE's workers and queues.
  void end(std::uint32_t pe) { endpoints_[pe].reset(); }
  /// Takes ring 0 away from its worker.
  Muted mute(std::uint32_t pe, std::uint32_t peer) const;

 private:
  std::vector<std::unique_ptr<proxy::Endpoint>> endpoints_;
};

/// A PE's view whose descriptors go to slots of ours, in place of those that a worker looks at.
class ProxyWorld::Muted {
 public:
  explicit Muted(const device::proxy::ProxyView& view);

  const device::proxy::ProxyView& view() const { return view_; }
  /// The worker gets what was stored.
  void ring() const;

 private:
  struct Shadow {
    device::proxy::Ring ring;
    std::uint64_t taken = 0;
    std::vector<port::Vector16> slots;
  };
  device::proxy::ProxyView view_;
  device::proxy::Ring real_;
  std::uint64_t first_;  ///< the index at which it went silent
  std::unique_ptr<Shadow> shadow_;
};

}  // namespace belfry::conformance
