#include "host/devx_transitions.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace belfry::host {

namespace prm = wire::prm;
using In = prm::ModifyQpIn;
using Qp = prm::QpContext;
using Path = prm::AddressPath;

namespace {

constexpr unsigned kLogLargestMessage = 30;  // 1 GiB, the largest of mlx5 devices
constexpr unsigned kLogAckRequest = 8;       // an acknowledgement at least every 256 packets

ModifyQpMailbox begin(prm::Opcode opcode, std::uint32_t qpn) {
  ModifyQpMailbox box{};
  In::opcode::set(box.data(), static_cast<unsigned>(opcode));
  In::qpn::set(box.data(), qpn);
  Qp::st::set(In::qpc::at(box.data()), static_cast<unsigned>(prm::ServiceType::rc));
  Qp::pm_state::set(In::qpc::at(box.data()), static_cast<unsigned>(prm::PathMigration::migrated));
  return box;
}

void set_global_route(std::uint8_t* path, const TransitionFacts& facts, const ConnectionPlan& plan) {
  Path::src_addr_index::set(path, facts.gid_index);
  Path::hop_limit::set(path, plan.parameters.hop_limit);
  Path::tclass::set(path, plan.parameters.traffic_class);
  Path::flow_label::set(path, plan.parameters.flow_label);
  std::memcpy(Path::rgid_rip::at(path), plan.remote.gid.data(), plan.remote.gid.size());
}

void set_ethernet_path(std::uint8_t* path, const TransitionFacts& facts, const ConnectionPlan& plan) {
  Path::eth_prio::set(path, plan.parameters.service_level);
  std::memcpy(Path::rmac::at(path), facts.ethernet.mac.data(), facts.ethernet.mac.size());
  if (plan.remote.gid_type != GidType::roce_v2) return;
  Path::udp_sport::set(path, facts.ethernet.udp_source_port);
  // RoCE v2 carries the traffic class in IP's DSCP field, its upper six bits.
  Path::dscp::set(path, plan.parameters.traffic_class >> 2);
}

void set_infiniband_path(std::uint8_t* path, const ConnectionPlan& plan) {
  Path::rlid::set(path, plan.remote.lid);
  Path::sl::set(path, plan.parameters.service_level);
  Path::grh::set(path, plan.global ? 1 : 0);
}

}  // namespace

std::uint8_t log_depth(std::uint8_t depth) {
  const unsigned floor = std::bit_floor(std::max<unsigned>(depth, 1));
  return static_cast<std::uint8_t>(std::countr_zero(floor));
}

ModifyQpMailbox make_reset_to_init(const TransitionFacts& facts) {
  ModifyQpMailbox box = begin(prm::Opcode::rst2init_qp, facts.qpn);
  std::uint8_t* qp = In::qpc::at(box.data());
  Qp::rwe::set(qp, has(facts.remote_access, Access::remote_write) ? 1 : 0);
  Qp::rre::set(qp, has(facts.remote_access, Access::remote_read) ? 1 : 0);
  const bool atomics = has(facts.remote_access, Access::remote_atomic);
  Qp::rae::set(qp, atomics ? 1 : 0);
  Qp::atomic_mode::set(
      qp, static_cast<unsigned>(atomics ? prm::AtomicMode::ib_specification : prm::AtomicMode::none));
  std::uint8_t* path = Qp::primary_address_path::at(qp);
  Path::vhca_port_num::set(path, facts.port);
  return box;
}

ModifyQpMailbox make_init_to_rtr(const TransitionFacts& facts, const ConnectionPlan& plan) {
  ModifyQpMailbox box = begin(prm::Opcode::init2rtr_qp, facts.qpn);
  std::uint8_t* qp = In::qpc::at(box.data());
  Qp::mtu::set(qp, prm::mtu_code(plan.path_mtu));
  Qp::log_msg_max::set(qp, kLogLargestMessage);
  Qp::remote_qpn::set(qp, plan.remote.qpn);
  Qp::next_rcv_psn::set(qp, plan.remote.psn);
  Qp::log_rra_max::set(qp, log_depth(plan.depth.responder));
  Qp::min_rnr_nak::set(qp, plan.parameters.min_rnr_timer);
  std::uint8_t* path = Qp::primary_address_path::at(qp);
  Path::vhca_port_num::set(path, facts.port);
  if (plan.global) set_global_route(path, facts, plan);
  if (plan.remote.link == LinkLayer::ethernet) {
    set_ethernet_path(path, facts, plan);
  } else {
    set_infiniband_path(path, plan);
  }
  return box;
}

ModifyQpMailbox make_rtr_to_rts(const TransitionFacts& facts, const ConnectionPlan& plan) {
  ModifyQpMailbox box = begin(prm::Opcode::rtr2rts_qp, facts.qpn);
  std::uint8_t* qp = In::qpc::at(box.data());
  Qp::next_send_psn::set(qp, facts.send_psn);
  Qp::log_sra_max::set(qp, log_depth(plan.depth.initiator));
  Qp::log_ack_req_freq::set(qp, kLogAckRequest);
  Qp::retry_count::set(qp, plan.parameters.retry_count);
  Qp::rnr_retry::set(qp, plan.parameters.rnr_retry);
  Path::ack_timeout::set(Qp::primary_address_path::at(qp), plan.parameters.ack_timeout);
  return box;
}

}  // namespace belfry::host
