#pragma once
/// \file
/// The submitter of real workers: ibv_post_send, on whatever provider rdma-core has.

#include <memory>
#include <unordered_map>
#include <vector>

#include "belfry/host/verbs_queue.hpp"
#include "proxy/submitter.hpp"

namespace belfry::proxy {

class VerbsSubmitter final : public Submitter {
 public:
  /// \param cq     the send CQ of all the queues
  /// \param queues owned by the caller, who keeps them for as long; all of one depth
  VerbsSubmitter(std::shared_ptr<ibv_cq> cq, std::vector<host::VerbsQueue*> queues);

  PostResult post(std::uint32_t queue, std::span<const Work> chain) override;
  std::size_t poll(std::span<WorkCompletion> out) override;
  std::uint32_t depth() const override { return depth_; }
  std::uint32_t qpn(std::uint32_t queue) const override { return queues_[queue]->qpn(); }

 private:
  std::shared_ptr<ibv_cq> cq_;
  std::vector<host::VerbsQueue*> queues_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_qpn_;
  std::uint32_t depth_ = 0;
  // Used by each post again: filled in only as far as a work request needs.
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> segments_;
};

}  // namespace belfry::proxy
