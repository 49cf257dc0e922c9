#include "proxy/verbs_submitter.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "belfry/wire/syndrome.hpp"

namespace belfry::proxy {

namespace {

constexpr std::size_t kMostChain = 64;

/// The mlx5 syndrome that becomes this ibverbs status. Of two that do, the first.
wire::Syndrome syndrome_of(ibv_wc_status status) {
  for (unsigned s = 0; s < 256; ++s) {
    const auto syndrome = static_cast<wire::Syndrome>(s);
    if (wire::ibverbs_status(syndrome) == static_cast<unsigned>(status)) return syndrome;
  }
  return wire::Syndrome::remote_aborted;
}

void fill(ibv_send_wr& request, ibv_sge& segment, const Work& work) {
  request.wr_id = work.id;
  request.num_sge = work.bytes != 0 ? 1 : 0;
  request.send_flags = work.signaled ? unsigned{IBV_SEND_SIGNALED} : 0u;
  segment = {work.local, work.bytes, work.lkey};
  switch (work.kind) {
    case Work::Kind::write_value:
      request.send_flags |= IBV_SEND_INLINE;
      segment.addr = reinterpret_cast<std::uint64_t>(&work.value);
      [[fallthrough]];
    case Work::Kind::write:
      request.opcode = IBV_WR_RDMA_WRITE;
      break;
    case Work::Kind::read:
      request.opcode = IBV_WR_RDMA_READ;
      break;
    case Work::Kind::fetch_add:
    case Work::Kind::compare_swap:
      request.opcode =
          work.kind == Work::Kind::fetch_add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
      request.wr.atomic.remote_addr = work.remote;
      request.wr.atomic.rkey = work.rkey;
      request.wr.atomic.compare_add = work.value;
      request.wr.atomic.swap = work.second_value;
      return;
  }
  request.wr.rdma.remote_addr = work.remote;
  request.wr.rdma.rkey = work.rkey;
}

}  // namespace

VerbsSubmitter::VerbsSubmitter(std::shared_ptr<ibv_cq> cq, std::vector<host::VerbsQueue*> queues)
    : cq_(std::move(cq)), queues_(std::move(queues)), requests_(kMostChain), segments_(kMostChain) {
  for (std::size_t i = 0; i < kMostChain; ++i) requests_[i].sg_list = &segments_[i];
  depth_ = ~0u;
  for (std::uint32_t i = 0; i < queues_.size(); ++i) {
    by_qpn_[queues_[i]->qpn()] = i;
    depth_ = std::min(depth_, queues_[i]->send_depth());
  }
}

PostResult VerbsSubmitter::post(std::uint32_t queue, std::span<const Work> chain) {
  const std::size_t count = std::min(chain.size(), kMostChain);
  if (count == 0) return {};
  for (std::size_t i = 0; i < count; ++i) {
    fill(requests_[i], segments_[i], chain[i]);
    requests_[i].next = &requests_[i] + 1;
  }
  requests_[count - 1].next = nullptr;
  ibv_send_wr* bad = nullptr;
  PostResult result;
  result.error = ibv_post_send(queues_[queue]->qp(), requests_.data(), &bad);
  result.accepted = result.error == 0 ? count
                    : bad != nullptr  ? static_cast<std::size_t>(bad - requests_.data())
                                      : 0;
  return result;
}

std::size_t VerbsSubmitter::poll(std::span<WorkCompletion> out) {
  std::array<ibv_wc, 32> polled;
  const int most = static_cast<int>(std::min(out.size(), polled.size()));
  const int count = ibv_poll_cq(cq_.get(), most, polled.data());
  if (count < 0) throw std::runtime_error("ibv_poll_cq failed: the CQ has overrun or its device is gone");
  for (int i = 0; i < count; ++i) {
    const ibv_wc& wc = polled[static_cast<std::size_t>(i)];
    WorkCompletion& c = out[static_cast<std::size_t>(i)];
    const auto at = by_qpn_.find(wc.qp_num);
    c.queue = at != by_qpn_.end() ? at->second : ~0u;
    c.id = wc.wr_id;
    c.syndrome = wc.status == IBV_WC_SUCCESS ? wire::Syndrome::none : syndrome_of(wc.status);
    c.vendor = static_cast<std::uint8_t>(wc.vendor_err);
    c.qpn = wc.qp_num;
  }
  return static_cast<std::size_t>(count);
}

}  // namespace belfry::proxy
