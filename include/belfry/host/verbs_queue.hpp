#pragma once
/// \file
/// An RC queue pair made by ibv_create_qp, posted to by the provider's own ibv_post_send.

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "belfry/host/queue.hpp"

namespace belfry::host {

struct VerbsQueueOptions {
  std::uint32_t send_depth = 256;     ///< work requests
  std::uint32_t receive_depth = 256;  ///< work requests
  std::uint32_t max_segments = 1;     ///< scatter/gather entries of one request
  std::uint32_t max_inline = 64;      ///< bytes; the device may give more
  bool signal_all = false;            ///< every send completes visibly, asked for or not
  Access remote_access = kAllAccess;  ///< what the peer may do; regions narrow it further
  /// Completions of sends go there, beside other queues'; null: to a CQ of the queue's own. Whoever shares
  /// one sees to it that it has an entry for every send that can be outstanding.
  std::shared_ptr<ibv_cq> send_cq;
};

/// A CQ for several queues, on the domain's device. Throws Error: bad_argument (beyond its limit),
/// locked_memory, system.
std::shared_ptr<ibv_cq> make_completion_queue(const ProtectionDomain& domain, std::uint32_t entries);

class VerbsQueue final : public Queue {
 public:
  /// Throws Error: bad_argument (beyond the device's limits, which it names), locked_memory, system.
  explicit VerbsQueue(const ProtectionDomain& domain, const VerbsQueueOptions& options = {});

  std::uint32_t qpn() const override { return qp_->qp_num; }
  QueueAddress local_address() const override { return address_; }
  ConnectionPlan connect(const QueueAddress& remote, const ConnectionParameters& parameters) override;
  void fail() override;

  ibv_qp* qp() const { return qp_.get(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* receive_cq() const { return receive_cq_.get(); }

  /// What the provider gave, at least what was asked for.
  std::uint32_t send_depth() const { return capabilities_.max_send_wr; }
  std::uint32_t receive_depth() const { return capabilities_.max_recv_wr; }
  std::uint32_t max_inline() const { return capabilities_.max_inline_data; }
  const ProtectionDomain& domain() const { return domain_; }

 private:
  void modify_to_init();
  void modify_to_rtr(const ConnectionPlan& plan);
  void modify_to_rts(const ConnectionPlan& plan);

  struct Destroy {
    void operator()(ibv_cq* cq) const { ibv_destroy_cq(cq); }
    void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
  };
  // Destroyed last to first.
  ProtectionDomain domain_;
  VerbsQueueOptions options_;
  ibv_qp_cap capabilities_{};
  std::shared_ptr<ibv_cq> send_cq_;
  std::unique_ptr<ibv_cq, Destroy> receive_cq_;
  std::unique_ptr<ibv_qp, Destroy> qp_;
  QueueAddress address_;
  bool connected_ = false;
};

}  // namespace belfry::host
