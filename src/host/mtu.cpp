#include "belfry/host/mtu.hpp"

#include <algorithm>

#include "belfry/host/errors.hpp"
#include "belfry/wire/prm_qp.hpp"

namespace belfry::host {

namespace {

constexpr unsigned kSmallest = 256;
constexpr unsigned kLargest = 4096;

// GRH 40 (an IP header is no longer), UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4.
constexpr unsigned kRoceOverhead = 40 + 8 + 12 + 4 + 28 + 4;

void require_path_mtu(const char* what, unsigned bytes) {
  if (mtu_code(bytes) != 0) return;
  throw Error(ErrorKind::bad_argument, std::string(what) + " of " + std::to_string(bytes) + " B",
              "A path MTU is 256, 512, 1024, 2048 or 4096 B");
}

}  // namespace

std::uint8_t mtu_code(unsigned bytes) { return static_cast<std::uint8_t>(wire::prm::mtu_code(bytes)); }
unsigned mtu_bytes(unsigned code) { return wire::prm::mtu_bytes(code); }

unsigned path_mtu_of_netdev(unsigned netdev_mtu) {
  for (unsigned candidate = kLargest; candidate >= kSmallest; candidate /= 2) {
    if (netdev_mtu >= candidate + kRoceOverhead) return candidate;
  }
  return 0;
}

MtuChoice choose_mtu(unsigned port_active, std::optional<unsigned> netdev_mtu,
                     std::optional<unsigned> bound) {
  require_path_mtu("the port's active MTU", port_active);
  MtuChoice choice{port_active, "the port's active MTU"};
  if (netdev_mtu) {
    const unsigned fits = path_mtu_of_netdev(*netdev_mtu);
    if (fits == 0) {
      throw Error(
          ErrorKind::unsupported,
          "the network interface's MTU of " + std::to_string(*netdev_mtu) + " B is too small for RoCE",
          "Raise it: `ip link set DEV mtu 4200` (352 B is the least)");
    }
    if (fits <= choice.bytes) {
      choice = {fits,
                "the largest that fits in the network interface's MTU of " + std::to_string(*netdev_mtu)};
      if (fits < kLargest) choice.reason += " (4200 allows 4096)";
    }
  }
  if (bound) {
    require_path_mtu("the requested path MTU", *bound);
    if (*bound < choice.bytes) {
      choice = {*bound, "requested"};
    } else if (*bound > choice.bytes) {
      choice.reason += "; the requested " + std::to_string(*bound) + " is more than that";
    }
  }
  choice.reason = "path MTU " + std::to_string(choice.bytes) + ": " + choice.reason;
  return choice;
}

MtuChoice agree_mtu(unsigned local, unsigned remote) {
  require_path_mtu("this end's path MTU", local);
  require_path_mtu("the peer's path MTU", remote);
  const unsigned agreed = std::min(local, remote);
  std::string reason = "path MTU " + std::to_string(agreed) + ": ";
  if (local == remote) {
    reason += "both ends can do it";
  } else if (remote < local) {
    reason += "the peer can do no more (this end could do " + std::to_string(local) + ")";
  } else {
    reason += "this end can do no more (the peer could do " + std::to_string(remote) + ")";
  }
  return {agreed, reason};
}

}  // namespace belfry::host
