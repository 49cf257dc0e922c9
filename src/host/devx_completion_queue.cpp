#include "host/devx_completion_queue.hpp"

#include <array>
#include <bit>
#include <cerrno>

#include "belfry/wire/prm_cq.hpp"
#include "host/queue_layout.hpp"

namespace belfry::host {

namespace prm = wire::prm;

namespace {

std::uint32_t event_queue(ibv_context* context) {
  std::uint32_t eqn = 0;
  errno = 0;
  if (mlx5dv_devx_query_eqn(context, 0, &eqn) != 0) {
    throw verbs_error(VerbsCall::devx_query_eqn, errno != 0 ? errno : EIO, "completion vector 0");
  }
  return eqn;
}

}  // namespace

DevxCompletionQueue::DevxCompletionQueue(ibv_context* context, QueueMemory& memory, std::uint32_t uar_page,
                                         const Options& options) {
  const std::size_t ring_bytes = std::size_t{options.entries} * wire::kCqeBytes;
  const RingLayout layout = lay_out_ring(ring_bytes);
  storage_ = memory.allocate(layout.total_bytes);
  auto* base = static_cast<std::byte*>(storage_.get());
  memory.fill(base, std::byte{0xff}, ring_bytes);
  umem_ = Umem(context, base, layout.total_bytes);

  std::array<std::uint8_t, prm::CreateCqIn::kBytes> in{};
  std::array<std::uint8_t, prm::CreateCqOut::kBytes> out{};
  prm::CreateCqIn::opcode::set(in.data(), static_cast<unsigned>(prm::Opcode::create_cq));
  prm::CreateCqIn::cq_umem_id::set(in.data(), umem_.id());
  prm::CreateCqIn::cq_umem_valid::set(in.data(), 1);
  std::uint8_t* cq = prm::CreateCqIn::cq_context::at(in.data());
  using Cq = prm::CqContext;
  const bool collapsed = options.layout == CompletionLayout::collapsed;
  Cq::dbr_umem_valid::set(cq, 1);
  Cq::dbr_umem_id::set(cq, umem_.id());
  Cq::dbr_addr::set(cq, layout.record_offset);
  Cq::cqe_sz::set(cq, static_cast<unsigned>(prm::CqeSize::bytes_64));
  Cq::cc::set(cq, collapsed ? 1 : 0);
  Cq::oi::set(cq, options.ignore_overrun ? 1 : 0);
  Cq::log_cq_size::set(cq, static_cast<unsigned>(std::countr_zero(options.entries)));
  Cq::uar_page::set(cq, uar_page);
  Cq::c_eqn::set(cq, event_queue(context));
  object_ = DevxObject(context, VerbsCall::devx_create_cq, in, out,
                       std::to_string(options.entries) + " entries" + (collapsed ? ", collapsed" : ""));

  ring_.entries = reinterpret_cast<wire::Cqe*>(base);
  ring_.count = options.entries;
  ring_.layout = options.layout;
  ring_.ignore_overrun = options.ignore_overrun;
  ring_.record = reinterpret_cast<wire::CqDoorbellRecord*>(base + layout.record_offset);
  ring_.cqn = prm::CreateCqOut::cqn::get(out.data());
}

}  // namespace belfry::host
