#pragma once
/// \file
/// mini-proxy, all of it: what a kernel includes.

#include "belfry/device/endpoint.hpp"
#include "belfry/device/proxy/channel.hpp"

namespace belfry::device::proxy {

template <class Policy = DefaultProxyPolicy>
using Endpoint = device::Endpoint<Channel<Policy>>;

}  // namespace belfry::device::proxy
