#include "host/address_attributes.hpp"

#include <cstdio>
#include <cstring>

namespace belfry::host {

ibv_ah_attr address_attributes(const Context& context, const ConnectionPlan& plan) {
  const ConnectionParameters& p = plan.parameters;
  ibv_ah_attr attributes{};
  attributes.port_num = context.port();
  attributes.dlid = plan.remote.lid;
  attributes.sl = p.service_level;
  if (plan.global) {
    attributes.is_global = 1;
    std::memcpy(attributes.grh.dgid.raw, plan.remote.gid.data(), plan.remote.gid.size());
    attributes.grh.sgid_index = static_cast<std::uint8_t>(context.gid().entry.index);
    attributes.grh.traffic_class = p.traffic_class;
    attributes.grh.hop_limit = p.hop_limit;
    attributes.grh.flow_label = p.flow_label;
  }
  return attributes;
}

std::string describe_pair(const QueueAddress& local, const QueueAddress& remote) {
  const auto number = [](std::uint32_t qpn) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%06x", qpn);
    return std::string(text);
  };
  std::string peer =
      remote.link == LinkLayer::ethernet ? format_gid(remote.gid) : "LID " + std::to_string(remote.lid);
  return "QP " + number(local.qpn) + " to " + peer + " QP " + number(remote.qpn);
}

}  // namespace belfry::host
