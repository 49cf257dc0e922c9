#pragma once
/// \file
/// The transport of the examples, in one place: another one is another `Policy` and another `Endpoint`.

#include "belfry/device/gda.hpp"
#include "belfry/host/device_endpoint.hpp"

namespace belfry::examples {

/// What the kernels are compiled for. Derive and override to try another ordering, sharing or payload.
struct Policy : device::DefaultPolicy {};

using Endpoint = device::gda::Endpoint<Policy>;
inline constexpr const char* kTransport = "mini-gda";

/// Makes options fit the policy. DeviceEndpoint::admit() then checks that what came out does.
inline void fit_policy(host::DeviceEndpointOptions& options) {
  options.doorbell = Policy::doorbell_mode;
  options.completions = Policy::completion_layout;
}

}  // namespace belfry::examples
