#pragma once
/// \file
/// Path MTU: what one end can do, and what two ends agree on. All values are bytes.

#include <cstdint>
#include <optional>
#include <string>

namespace belfry::host {

struct MtuChoice {
  unsigned bytes = 0;  ///< 256, 512, 1024, 2048 or 4096
  std::string reason;  ///< one line
};

/// The largest path MTU whose packets fit in a RoCE network interface's MTU, with room for the headers
/// that Linux reserves (GRH or IP, UDP, BTH, extended headers, ICRC: 96 B; iboe_get_mtu in
/// include/rdma/ib_addr.h). 0 where not even 256 fits.
unsigned path_mtu_of_netdev(unsigned netdev_mtu);

/// What this end can do: the smaller of the port's active MTU, what its interface carries, and the
/// caller's bound.
/// \param port_active the port's active path MTU
/// \param netdev_mtu  MTU of the network interface behind the GID; absent on InfiniBand or if unknown
/// \param bound       the caller's upper bound
/// Throws Error: unsupported if the interface's MTU is too small for any; bad_argument if port_active or
/// bound is no path MTU.
MtuChoice choose_mtu(unsigned port_active, std::optional<unsigned> netdev_mtu,
                     std::optional<unsigned> bound = {});

/// What a connection uses: the smaller of both ends.
MtuChoice agree_mtu(unsigned local, unsigned remote);

/// enum ibv_mtu (and the PRM's mtu field): 1 for 256 up to 5 for 4096; 0 for anything else.
std::uint8_t mtu_code(unsigned bytes);
/// The reverse; 0 for an unknown code.
unsigned mtu_bytes(unsigned code);

}  // namespace belfry::host
