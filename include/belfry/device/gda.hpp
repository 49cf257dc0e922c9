#pragma once
/// \file
/// mini-gda, all of it: what a kernel includes.
///
///     using Gda = belfry::device::gda::Endpoint<>;
///     Gda endpoint(view);                       // from host::DeviceEndpoint::view()
///     auto channel = endpoint.channel(peer);
///     channel.put_signal(belfry::device::Thread{}, remote, local, bytes, {signal});

#include "belfry/device/endpoint.hpp"
#include "belfry/device/gda/channel.hpp"

namespace belfry::device::gda {

template <class Policy = DefaultPolicy>
using Endpoint = device::Endpoint<Channel<Policy>>;

}  // namespace belfry::device::gda
