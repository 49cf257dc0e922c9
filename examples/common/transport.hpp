#pragma once
/// \file
/// The transports of the examples, in one place. A kernel takes an `Endpoint`, and its main a `Transport`,
/// which is one end of it on the host.

#include <string>
#include <type_traits>
#include <vector>

#include "belfry/host/device_endpoint.hpp"
#include "belfry/proxy/endpoint.hpp"
#include "common/policies.hpp"
#include "common/program.hpp"

namespace belfry::examples {

/// mini-gda: GPU-rung or CPU-assisted, as Pe::path says.
class GdaTransport {
 public:
  using Endpoint = examples::Endpoint;

  /// \param self_queues whether a PE sends to itself too
  GdaTransport(const Pe& pe, const std::vector<host::WindowOptions>& windows, bool self_queues = false);

  const device::EndpointView& view() const { return endpoint_.view(); }
  const host::Windows& windows() const { return endpoint_.windows(); }
  const host::Context& context() const { return endpoint_.context(); }
  /// "mini-gda on mlx5_0 (software NIC)"
  std::string describe() const;

 private:
  host::DeviceEndpoint endpoint_;
};

/// mini-proxy: a ring and a worker on each PE.
class ProxyTransport {
 public:
  using Endpoint = ProxyEndpoint;

  ProxyTransport(const Pe& pe, const std::vector<host::WindowOptions>& windows, bool self_queues = false);

  const device::proxy::ProxyView& view() const { return endpoint_.view(); }
  const host::Windows& windows() const { return windows_; }
  const host::Context& context() const { return windows_.domain().context(); }
  std::string describe() const;

 private:
  host::Windows windows_;
  proxy::Endpoint endpoint_;
};

/// Calls `body` with the type of the transport that --path names: `[&](auto transport) { using Transport =
/// typename decltype(transport)::type; ... }`.
template <class Body>
void with_transport(const Pe& pe, const Body& body) {
  if (pe.path == Path::proxy) {
    body(std::type_identity<ProxyTransport>{});
  } else {
    body(std::type_identity<GdaTransport>{});
  }
}

}  // namespace belfry::examples
