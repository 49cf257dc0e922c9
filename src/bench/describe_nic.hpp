#pragma once
/// \file
/// The NIC behind an open context, as records name it.

#include "belfry/host/context.hpp"
#include "bench/platform.hpp"

namespace belfry::bench {

/// Throws host::Error if the list of devices cannot be had.
NicDescription describe_nic(const host::Context& context);

/// "InfiniBand 200 Gb/s": link layer and rate of a port; the rate is left out where its codes are unknown.
/// \param speed ibv_port_attr::active_speed
/// \param width ibv_port_attr::active_width
std::string link_text(host::LinkLayer link, unsigned speed, unsigned width);

}  // namespace belfry::bench
