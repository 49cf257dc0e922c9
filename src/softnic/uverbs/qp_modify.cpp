// Transitions and state of queue pairs.

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cstring>

#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/device_attributes.hpp"
#include "softnic/uverbs/objects.hpp"
#include "softnic/uverbs/qp_transition.hpp"

namespace belfry::softnic {
namespace {

constexpr std::uint32_t kStandardMask = (1u << 21) - 1;
constexpr std::uint8_t kMaxState = static_cast<std::uint8_t>(QpState::error);
constexpr std::uint8_t kMigrated = 0;  // enum ibv_mig_state
constexpr std::uint32_t kQpAccessRights =
    kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;
constexpr std::uint32_t kNumberMask = 0xffffff;  // of QPNs and PSNs

PathAttributes path_of(const ib_uverbs_qp_dest& d) {
  PathAttributes path;
  path.dlid = d.dlid;
  path.global = d.is_global != 0;
  std::memcpy(path.dgid.data(), d.dgid, path.dgid.size());
  path.sgid_index = d.sgid_index;
  path.sl = d.sl;
  path.traffic_class = d.traffic_class;
  path.hop_limit = d.hop_limit;
  path.flow_label = d.flow_label;
  path.source_path_bits = d.src_path_bits;
  path.static_rate = d.static_rate;
  return path;
}

ib_uverbs_qp_dest destination_of(const PathAttributes& path, std::uint8_t port) {
  ib_uverbs_qp_dest d{};
  std::memcpy(d.dgid, path.dgid.data(), path.dgid.size());
  d.flow_label = path.flow_label;
  d.dlid = path.dlid;
  d.sgid_index = path.sgid_index;
  d.hop_limit = path.hop_limit;
  d.traffic_class = path.traffic_class;
  d.sl = path.sl;
  d.src_path_bits = path.source_path_bits;
  d.static_rate = path.static_rate;
  d.is_global = path.global ? 1 : 0;
  d.port_num = port;
  return d;
}

/// Whether the path's source is one of the port's, and whether it is global where the link demands it.
bool path_valid(const FileState& file, const ib_uverbs_qp_dest& d) {
  if (d.is_global == 0) return file.identity.link != LinkLayer::ethernet;
  return d.sgid_index < file.identity.gids.size();
}

bool values_valid(const FileState& file, const ib_uverbs_modify_qp& r) {
  const auto has = [&r](std::uint32_t bit) { return (r.attr_mask & bit) != 0; };
  const std::uint32_t depth = file.limits().read_atomic_depth;
  if (has(kQpPort) && r.port_num != kPort) return false;
  if (has(kQpPkeyIndex) && r.pkey_index >= pkey_count(file.identity.link)) return false;
  if (has(kQpPath) && !path_valid(file, r.dest)) return false;
  // On the way to RTR the path's port is the QP's, whatever the request says.
  const bool to_rtr = has(kQpState) && r.qp_state == static_cast<std::uint8_t>(QpState::rtr);
  if (has(kQpPath) && !to_rtr && r.dest.port_num != kPort) return false;
  if (has(kQpPathMtu) && (r.path_mtu < 1 || r.path_mtu > 5)) return false;
  if (has(kQpInitiatorDepth) && r.max_rd_atomic > depth) return false;
  if (has(kQpResponderDepth) && r.max_dest_rd_atomic > depth) return false;
  // Automatic path migration is not among the device's capabilities.
  if (has(kQpAlternatePath)) return false;
  return !has(kQpPathMigration) || r.path_mig_state == kMigrated;
}

QpModify change_of(const ib_uverbs_modify_qp& r) {
  const auto has = [&r](std::uint32_t bit) { return (r.attr_mask & bit) != 0; };
  QpModify c;
  if (has(kQpState)) c.state = static_cast<QpState>(r.qp_state);
  if (has(kQpAccess)) c.access = r.qp_access_flags & kQpAccessRights;
  if (has(kQpPkeyIndex)) c.pkey_index = r.pkey_index;
  if (has(kQpPort)) c.port = r.port_num;
  if (has(kQpPath)) c.path = path_of(r.dest);
  if (has(kQpPathMtu)) c.path_mtu = 128u << r.path_mtu;
  if (has(kQpDestination)) c.destination_qpn = r.dest_qp_num & kNumberMask;
  if (has(kQpReceivePsn)) c.receive_psn = r.rq_psn & kNumberMask;
  if (has(kQpSendPsn)) c.send_psn = r.sq_psn & kNumberMask;
  if (has(kQpInitiatorDepth)) c.initiator_depth = r.max_rd_atomic;
  if (has(kQpResponderDepth)) c.responder_depth = r.max_dest_rd_atomic;
  if (has(kQpMinRnrTimer)) c.min_rnr_timer = r.min_rnr_timer & 0x1f;
  if (has(kQpTimeout)) c.timeout = r.timeout & 0x1f;
  if (has(kQpRetryCount)) c.retry_count = r.retry_cnt & 7;
  if (has(kQpRnrRetry)) c.rnr_retry = r.rnr_retry & 7;
  if (has(kQpNotifyWhenDrained)) c.drained_event = r.en_sqd_async_notify != 0;
  return c;
}

int modify(FileState& file, const ib_uverbs_modify_qp& request) {
  const QpObject* qp = file.objects.find<QpObject>(request.qp_handle);
  if (qp == nullptr) return EINVAL;
  const bool has_state = (request.attr_mask & kQpState) != 0;
  const bool has_current = (request.attr_mask & kQpCurrentState) != 0;
  if ((has_state && request.qp_state > kMaxState) || (has_current && request.cur_qp_state > kMaxState))
    return EINVAL;
  const Result<QpSnapshot> now = file.nic.query_qp(qp->number);
  if (!now) return now.error();
  const QpState from = has_current ? static_cast<QpState>(request.cur_qp_state) : now->state;
  const QpState to = has_state ? static_cast<QpState>(request.qp_state) : from;
  if (!transition_allowed(from, to, request.attr_mask) || !values_valid(file, request)) return EINVAL;
  return file.nic.modify_qp(qp->number, change_of(request));
}

ib_uverbs_query_qp_resp describe(const QpObject& qp, const QpSnapshot& now) {
  ib_uverbs_query_qp_resp r{};
  r.dest = destination_of(now.path, now.port);
  r.max_send_wr = qp.capacity.send_requests;
  r.max_recv_wr = qp.capacity.receive_requests;
  r.max_send_sge = qp.capacity.send_sge;
  r.max_recv_sge = qp.capacity.receive_sge;
  r.max_inline_data = qp.capacity.inline_bytes;
  r.rq_psn = now.receive_psn;
  r.sq_psn = now.send_psn;
  r.dest_qp_num = now.destination_qpn;
  r.qp_access_flags = now.access;
  r.pkey_index = now.pkey_index;
  r.qp_state = static_cast<std::uint8_t>(now.state);
  r.cur_qp_state = r.qp_state;
  r.path_mtu = now.path_mtu == 0 ? 0 : mtu_code(now.path_mtu);
  r.path_mig_state = kMigrated;
  r.max_rd_atomic = now.initiator_depth;
  r.max_dest_rd_atomic = now.responder_depth;
  r.min_rnr_timer = now.min_rnr_timer;
  r.port_num = now.port;
  r.timeout = now.timeout;
  r.retry_cnt = now.retry_count;
  r.rnr_retry = now.rnr_retry;
  r.sq_sig_all = qp.signal_all ? 1 : 0;
  return r;
}

}  // namespace

int modify_qp(FileState& file, const WriteCall& call) {
  ib_uverbs_modify_qp request{};
  if (const int error = call.read(request); error != 0) return error;
  if ((request.attr_mask & ~kStandardMask) != 0) return EOPNOTSUPP;
  return modify(file, request);
}

int modify_qp_extended(FileState& file, const WriteCall& call) {
  ib_uverbs_ex_modify_qp request{};
  if (const int error = call.read(request); error != 0) return error;
  if ((request.base.attr_mask & ~(kStandardMask | kQpRateLimit)) != 0) return EOPNOTSUPP;
  if (call.driver_request.bytes != 0) {
    mlx5_ib_modify_qp driver{};
    const std::size_t least = offsetof(mlx5_ib_modify_qp, ece_options) + sizeof driver.ece_options;
    if (const int error = call.read_driver(driver, least, true); error != 0) return error;
    if (driver.comp_mask != 0 || driver.burst_info.reserved != 0) return EOPNOTSUPP;
  }
  if (const int error = modify(file, request.base); error != 0) return error;
  mlx5_ib_modify_qp_resp driver{};
  driver.response_length = static_cast<std::uint32_t>(std::min(sizeof driver, call.driver_response.bytes));
  if (const int error = call.respond_driver_some(driver); error != 0) return error;
  ib_uverbs_ex_modify_qp_resp response{};
  response.response_length = sizeof response;
  return call.respond(response);
}

int query_qp(FileState& file, const WriteCall& call) {
  ib_uverbs_query_qp request{};
  if (const int error = call.read(request); error != 0) return error;
  const QpObject* qp = file.objects.find<QpObject>(request.qp_handle);
  if (qp == nullptr) return EINVAL;
  const Result<QpSnapshot> now = file.nic.query_qp(qp->number);
  if (!now) return now.error();
  return call.respond(describe(*qp, *now));
}

}  // namespace belfry::softnic
