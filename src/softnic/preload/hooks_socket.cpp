/// \file
/// socket(): where a kernel has an RDMA netlink, it speaks of the kernel's devices, not of ours.
/// Without it libibverbs looks into sysfs.

#include <linux/netlink.h>
#include <sys/socket.h>

#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

using namespace belfry::softnic::preload;

BELFRY_HOOK(int, hook_socket, "socket", int domain, int type, int protocol) {
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA && process_tree() != nullptr) {
    return failed<int>(EPROTONOSUPPORT);
  }
  return real().socket(domain, type, protocol);
}
