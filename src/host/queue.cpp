#include "belfry/host/queue.hpp"

namespace belfry::host {

QueueAddress make_queue_address(const Context& context, std::uint32_t qpn) {
  QueueAddress address;
  address.qpn = qpn;
  address.psn = random_psn();
  address.lid = context.link() == LinkLayer::ethernet ? std::uint16_t{0} : context.port_attributes().lid;
  address.link = context.link();
  address.gid_type = context.gid().entry.type;
  address.gid = context.gid().entry.gid;
  address.path_mtu = static_cast<std::uint16_t>(context.mtu().bytes);
  address.depth = context.depth();
  return address;
}

}  // namespace belfry::host
