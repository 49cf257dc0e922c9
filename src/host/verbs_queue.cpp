#include "belfry/host/verbs_queue.hpp"

#include <algorithm>
#include <cerrno>

#include "belfry/host/errors.hpp"
#include "host/address_attributes.hpp"

namespace belfry::host {

namespace {

int last_error() { return errno != 0 ? errno : EIO; }

void require_within(const Context& context, const char* what, std::uint32_t asked, int limit) {
  if (asked <= static_cast<std::uint32_t>(std::max(limit, 0))) return;
  throw Error(ErrorKind::bad_argument,
              std::string(what) + " of " + std::to_string(asked) + " is more than " + context.device_name() +
                  " offers",
              "Its limit is " + std::to_string(limit));
}

void check_options(const Context& context, const VerbsQueueOptions& options) {
  const ibv_device_attr& limits = context.limits();
  if (options.send_depth == 0) {
    throw Error(ErrorKind::bad_argument, "a send depth of 0", "Ask for at least 1");
  }
  require_within(context, "a send depth", options.send_depth, limits.max_qp_wr);
  require_within(context, "a receive depth", options.receive_depth, limits.max_qp_wr);
  require_within(context, "a segment count", options.max_segments, limits.max_sge);
}

ibv_cq* create_cq(const Context& context, std::uint32_t entries, const char* side) {
  errno = 0;
  ibv_cq* cq = ibv_create_cq(context.get(), static_cast<int>(std::max(entries, 1u)), nullptr, nullptr, 0);
  if (cq == nullptr) {
    throw verbs_error(VerbsCall::create_cq, last_error(),
                      std::string("the ") + side + " queue's " + std::to_string(entries) + " entries", 0);
  }
  return cq;
}

}  // namespace

VerbsQueue::VerbsQueue(const ProtectionDomain& domain, const VerbsQueueOptions& options)
    : domain_(domain), options_(options) {
  const Context& context = domain.context();
  check_options(context, options);
  send_cq_ = options.send_cq;
  if (send_cq_ == nullptr) send_cq_.reset(create_cq(context, options.send_depth, "send"), Destroy());
  receive_cq_.reset(create_cq(context, options.receive_depth, "receive"));

  ibv_qp_init_attr attributes{};
  attributes.send_cq = send_cq_.get();
  attributes.recv_cq = receive_cq_.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = options.signal_all ? 1 : 0;
  attributes.cap.max_send_wr = options.send_depth;
  attributes.cap.max_recv_wr = options.receive_depth;
  attributes.cap.max_send_sge = options.max_segments;
  attributes.cap.max_recv_sge = options.max_segments;
  attributes.cap.max_inline_data = options.max_inline;
  errno = 0;
  qp_.reset(ibv_create_qp(domain.get(), &attributes));
  if (qp_ == nullptr) {
    throw verbs_error(VerbsCall::create_qp, last_error(),
                      std::to_string(options.send_depth) + " send and " +
                          std::to_string(options.receive_depth) + " receive requests with " +
                          std::to_string(options.max_inline) + " B inline");
  }
  capabilities_ = attributes.cap;
  address_ = make_queue_address(context, qp_->qp_num);
}

std::shared_ptr<ibv_cq> make_completion_queue(const ProtectionDomain& domain, std::uint32_t entries) {
  require_within(domain.context(), "a CQ", entries, domain.context().limits().max_cqe);
  // It keeps its domain, and so the device.
  return {create_cq(domain.context(), entries, "shared"), [domain](ibv_cq* cq) { ibv_destroy_cq(cq); }};
}

ConnectionPlan VerbsQueue::connect(const QueueAddress& remote, const ConnectionParameters& parameters) {
  if (connected_) {
    throw Error(ErrorKind::bad_argument, "the queue is connected already", "Make a new one for another peer");
  }
  ConnectionPlan plan = plan_connection(address_, remote, parameters);
  modify_to_init();
  modify_to_rtr(plan);
  modify_to_rts(plan);
  connected_ = true;
  return plan;
}

void VerbsQueue::modify_to_init() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = domain_.context().port();
  // The QP's rights are remote ones; local_write says what the peer's responses may do here.
  attributes.qp_access_flags =
      static_cast<unsigned>(options_.remote_access) & ~static_cast<unsigned>(Access::relaxed_ordering);
  const int code = ibv_modify_qp(qp_.get(), &attributes,
                                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (code != 0) throw verbs_error(VerbsCall::modify_qp_to_init, code, domain_.context().device_name());
}

void VerbsQueue::modify_to_rtr(const ConnectionPlan& plan) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = address_attributes(domain_.context(), plan);
  attributes.path_mtu = static_cast<ibv_mtu>(mtu_code(plan.path_mtu));
  attributes.dest_qp_num = plan.remote.qpn;
  attributes.rq_psn = plan.remote.psn;
  attributes.max_dest_rd_atomic = plan.depth.responder;
  attributes.min_rnr_timer = plan.parameters.min_rnr_timer;
  const int code = ibv_modify_qp(qp_.get(), &attributes,
                                 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (code != 0) {
    throw verbs_error(VerbsCall::modify_qp_to_rtr, code, describe_pair(address_, plan.remote));
  }
}

void VerbsQueue::modify_to_rts(const ConnectionPlan& plan) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = plan.parameters.ack_timeout;
  attributes.retry_cnt = plan.parameters.retry_count;
  attributes.rnr_retry = plan.parameters.rnr_retry;
  attributes.sq_psn = address_.psn;
  attributes.max_rd_atomic = plan.depth.initiator;
  const int code = ibv_modify_qp(qp_.get(), &attributes,
                                 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (code != 0) {
    throw verbs_error(VerbsCall::modify_qp_to_rts, code, describe_pair(address_, plan.remote));
  }
}

void VerbsQueue::fail() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (const int code = ibv_modify_qp(qp_.get(), &attributes, IBV_QP_STATE); code != 0) {
    throw verbs_error(VerbsCall::modify_qp_to_error, code, domain_.context().device_name());
  }
}

}  // namespace belfry::host
