#pragma once
/// \file
/// Policies of mini-proxy that the cases run under.

#include "belfry/device/proxy.hpp"

namespace belfry::conformance {

using device::proxy::Form;
using device::proxy::Protocol;

template <Protocol kProtocol, Form kForm>
struct ProxyPolicyOf : device::proxy::DefaultProxyPolicy {
  static constexpr Protocol protocol = kProtocol;
  static constexpr Form form = kForm;
};

using TunedPublished = ProxyPolicyOf<Protocol::tuned, Form::payload_published>;
/// Only for cases whose kernels put what the host has written.
using TunedVisible = ProxyPolicyOf<Protocol::tuned, Form::payload_visible>;
using SharedTuned = ProxyPolicyOf<Protocol::shared_tuned, Form::payload_published>;
using Baseline = ProxyPolicyOf<Protocol::baseline, Form::payload_published>;

}  // namespace belfry::conformance
