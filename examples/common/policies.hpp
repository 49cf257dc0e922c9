#pragma once
/// \file
/// The transports of the examples as kernels see them: another one is another `Policy` and another
/// `Endpoint`.

#include "belfry/device/gda.hpp"
#include "belfry/device/proxy.hpp"

namespace belfry::examples {

/// What the kernels are compiled for. Derive and override to try another ordering, sharing or payload.
struct Policy : device::DefaultPolicy {};

using Endpoint = device::gda::Endpoint<Policy>;
inline constexpr const char* kTransport = "mini-gda";

/// The same over mini-proxy. Threads that talk to different peers meet on one ring there, where mini-gda has
/// a queue for each peer; so the ring is one that producers may share.
struct ProxyPolicy : device::proxy::DefaultProxyPolicy {
  static constexpr device::proxy::Protocol protocol = device::proxy::Protocol::shared_tuned;
};
using ProxyEndpoint = device::proxy::Endpoint<ProxyPolicy>;

}  // namespace belfry::examples
