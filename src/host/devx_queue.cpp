#include "belfry/host/devx_queue.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "belfry/host/errors.hpp"
#include "belfry/wire/infiniband.hpp"
#include "belfry/wire/prm_qp.hpp"
#include "belfry/wire/wqe.hpp"
#include "host/address_attributes.hpp"
#include "host/devx_completion_queue.hpp"
#include "host/devx_objects.hpp"
#include "host/devx_transitions.hpp"
#include "host/queue_layout.hpp"

namespace belfry::host {

namespace prm = wire::prm;

struct DevxQueue::Impl {
  Impl(const ProtectionDomain& d, const DevxQueueOptions& o)
      : domain(d),
        options(o),
        doorbell_register(o.doorbell_register ? *o.doorbell_register : DoorbellRegister(d.context())) {}

  // Destroyed last to first: the QP before its CQs, umem and register, all before domain and context.
  ProtectionDomain domain;
  DevxQueueOptions options;
  DoorbellRegister doorbell_register;
  DevxCompletionQueue send_cq;
  DevxCompletionQueue receive_cq;
  std::shared_ptr<void> storage;
  Umem umem;
  std::shared_ptr<void> record_storage;  ///< null: in `storage`
  Umem record_umem;
  DevxObject object;
  DevxQueueView view;
  QueueAddress address;
  bool connected = false;
};

namespace {

void require_power_of_two(const char* what, std::uint32_t value, std::uint32_t most) {
  if (std::has_single_bit(value) && value <= most) return;
  throw Error(ErrorKind::bad_argument, std::string(what) + " of " + std::to_string(value),
              "It must be a power of two, " + std::to_string(most) + " at most");
}

void check_depth(ReadAtomicDepth device, const std::optional<ReadAtomicDepth>& asked) {
  if (!asked) return;
  const bool fits = asked->initiator >= 1 && asked->initiator <= device.initiator && asked->responder >= 1 &&
                    asked->responder <= device.responder;
  if (fits) return;
  throw Error(ErrorKind::bad_argument, describe(*asked),
              "The device takes 1.." + std::to_string(device.initiator) + " as requester and 1.." +
                  std::to_string(device.responder) + " as responder");
}

Error shared_register_error(const DevxQueueOptions& options) {
  const std::string why =
      ": queues that share one overwrite each other's doorbells, and without a record the device has nothing "
      "else to go by";
  if (options.doorbell_register) {
    return {ErrorKind::bad_argument, "a queue without a doorbell record on a shared register" + why,
            "Give each queue its own register, or use DoorbellMode::record"};
  }
  return {ErrorKind::unsupported,
          "a queue without a doorbell record, and the driver gave no register of its own" + why,
          "Make fewer queues, or use DoorbellMode::record"};
}

void check_options(const Context& context, const DevxQueueOptions& options) {
  if (!context.devx().available) {
    throw Error(
        ErrorKind::unsupported, "DEVX queues cannot be made on " + context.device_name(),
        context.devx().reason + ". Use verbs queues, or the software NIC: `belfry softnic -- COMMAND`");
  }
  require_power_of_two("a send queue", options.send_blocks, wire::kMaxSendQueueBlocks);
  if (options.receive_entries != 0) {
    require_power_of_two("a receive queue", options.receive_entries, 32768);
    require_power_of_two("a receive stride", options.receive_stride, 1024);
    if (options.receive_stride < wire::kSegmentBytes) {
      throw Error(ErrorKind::bad_argument, "a receive stride below 16 B", "A receive entry is 16 B or more");
    }
  }
  if (options.user_index > 0xffffff) {
    throw Error(ErrorKind::bad_argument, "a user index above 24 bits", "It takes 0..0xffffff");
  }
  check_depth(context.depth(), options.depth);
  if (options.doorbell != DoorbellMode::no_record) return;
  const unsigned most = context.devx().log_max_no_record_blocks;
  if (!context.devx().no_record) {
    throw Error(ErrorKind::unsupported,
                context.device_name() + " offers no queues without a doorbell record (send_dbr_mode)",
                "Use DoorbellMode::record");
  }
  if (most != 0 && options.send_blocks > (1u << most)) {
    throw Error(
        ErrorKind::bad_argument,
        "a send queue of " + std::to_string(options.send_blocks) + " blocks without a doorbell record",
        "The device's limit is " + std::to_string(1u << most));
  }
}

std::uint32_t pd_number(const ProtectionDomain& domain) {
  mlx5dv_pd pd{};
  mlx5dv_obj object{};
  object.pd.in = domain.get();
  object.pd.out = &pd;
  if (const int code = mlx5dv_init_obj(&object, MLX5DV_OBJ_PD); code != 0) {
    throw verbs_error(VerbsCall::init_object, code > 0 ? code : EIO, "a protection domain");
  }
  return pd.pdn;
}

/// The receive queue comes first and keeps the send queue on a block boundary.
std::size_t receive_bytes(const DevxQueueOptions& options) {
  const std::size_t bytes = std::size_t{options.receive_entries} * options.receive_stride;
  return (bytes + wire::kBlockBytes - 1) / wire::kBlockBytes * wire::kBlockBytes;
}

std::string describe(const DevxQueueOptions& options) {
  std::string text = std::to_string(options.send_blocks) + " send blocks";
  if (options.receive_entries != 0)
    text += ", " + std::to_string(options.receive_entries) + " receive entries";
  if (options.doorbell == DoorbellMode::no_record) text += ", no doorbell record";
  return text;
}

/// The peer's MAC and the UDP source port, as the driver resolves them for an address handle.
EthernetPath resolve_ethernet(const ProtectionDomain& domain, const QueueAddress& local,
                              const ConnectionPlan& plan) {
  struct Destroy {
    void operator()(ibv_ah* ah) const { ibv_destroy_ah(ah); }
  };
  ibv_ah_attr attributes = address_attributes(domain.context(), plan);
  errno = 0;
  const std::unique_ptr<ibv_ah, Destroy> handle(ibv_create_ah(domain.get(), &attributes));
  if (handle == nullptr) {
    throw verbs_error(VerbsCall::create_ah, errno != 0 ? errno : EIO, describe_pair(local, plan.remote));
  }
  mlx5dv_ah resolved{};
  mlx5dv_obj object{};
  object.ah.in = handle.get();
  object.ah.out = &resolved;
  if (const int code = mlx5dv_init_obj(&object, MLX5DV_OBJ_AH); code != 0) {
    throw verbs_error(VerbsCall::init_object, code > 0 ? code : EIO, "an address handle");
  }
  EthernetPath path;
  std::memcpy(path.mac.data(), resolved.av->rmac, path.mac.size());
  path.udp_source_port = Be16::from_raw(resolved.av->rlid).get();
  return path;
}

}  // namespace

DevxQueue::DevxQueue(const ProtectionDomain& domain, const DevxQueueOptions& options) {
  const Context& context = domain.context();
  check_options(context, options);
  impl_ = std::make_unique<Impl>(domain, options);
  Impl& q = *impl_;
  const bool owns_register = q.doorbell_register.dedicated() && !options.doorbell_register;
  if (options.doorbell == DoorbellMode::no_record && !owns_register) throw shared_register_error(options);
  if (q.options.memory == nullptr) q.options.memory = host_queue_memory();
  if (q.options.completion_memory == nullptr) q.options.completion_memory = q.options.memory;
  if (q.options.record_memory == nullptr) q.options.record_memory = q.options.memory;
  QueueMemory& completion_memory = *q.options.completion_memory;
  const bool collapsed = options.completions == CompletionLayout::collapsed;
  const std::uint32_t page = q.doorbell_register.page_id();
  q.send_cq =
      DevxCompletionQueue(context.get(), completion_memory, page,
                          {options.send_blocks, options.completions, collapsed || options.ignore_overrun});
  if (options.receive_entries != 0) {
    q.receive_cq =
        DevxCompletionQueue(context.get(), completion_memory, page,
                            {options.receive_entries, CompletionLayout::ring, options.ignore_overrun});
  }
  DevxQueueView& view = q.view;
  view.send_blocks = options.send_blocks;
  view.receive_entries = options.receive_entries;
  view.receive_stride = options.receive_entries != 0 ? options.receive_stride : 0;
  view.doorbell = options.doorbell;
  view.uar_register = q.doorbell_register.address();
  view.uar_page = page;
  view.owns_register = owns_register;
  view.send_completions = q.send_cq.ring();
  view.receive_completions = q.receive_cq.ring();
  create_qp(place_rings());
  q.address = make_queue_address(context, view.qpn);
  if (options.depth) q.address.depth = *options.depth;
}

DevxQueue::RecordPlace DevxQueue::place_rings() {
  Impl& q = *impl_;
  const DevxQueueOptions& options = q.options;
  ibv_context* context = q.domain.context().get();
  const std::size_t send_offset = receive_bytes(options);
  const RingLayout layout = lay_out_ring(send_offset + std::size_t{options.send_blocks} * wire::kBlockBytes);
  q.storage = options.memory->allocate(layout.total_bytes);
  auto* base = static_cast<std::byte*>(q.storage.get());
  q.umem = Umem(context, base, layout.total_bytes);
  q.view.send_queue = base + send_offset;
  q.view.receive_queue = options.receive_entries != 0 ? base : nullptr;
  if (options.record_memory == options.memory) {
    q.view.record = reinterpret_cast<wire::QpDoorbellRecord*>(base + layout.record_offset);
    return {q.umem.id(), layout.record_offset};
  }
  q.record_storage = options.record_memory->allocate(kPageBytes);
  q.record_umem = Umem(context, q.record_storage.get(), kPageBytes);
  q.view.record = static_cast<wire::QpDoorbellRecord*>(q.record_storage.get());
  return {q.record_umem.id(), 0};
}

void DevxQueue::create_qp(const RecordPlace& record) {
  Impl& q = *impl_;
  const DevxQueueOptions& options = q.options;
  std::array<std::uint8_t, prm::CreateQpIn::kBytes> in{};
  std::array<std::uint8_t, prm::CreateQpOut::kBytes> out{};
  prm::CreateQpIn::opcode::set(in.data(), static_cast<unsigned>(prm::Opcode::create_qp));
  prm::CreateQpIn::wq_umem_id::set(in.data(), q.umem.id());
  prm::CreateQpIn::wq_umem_valid::set(in.data(), 1);

  std::uint8_t* qp = prm::CreateQpIn::qpc::at(in.data());
  using Qp = prm::QpContext;
  Qp::st::set(qp, static_cast<unsigned>(prm::ServiceType::rc));
  Qp::pm_state::set(qp, static_cast<unsigned>(prm::PathMigration::migrated));
  Qp::pd::set(qp, pd_number(q.domain));
  Qp::uar_page::set(qp, q.view.uar_page);
  Qp::user_index::set(qp, options.user_index);
  Qp::log_sq_size::set(qp, static_cast<unsigned>(std::countr_zero(options.send_blocks)));
  Qp::cqn_snd::set(qp, q.view.send_completions.cqn);
  if (options.receive_entries != 0) {
    Qp::rq_type::set(qp, static_cast<unsigned>(prm::ReceiveQueueType::regular));
    Qp::log_rq_size::set(qp, static_cast<unsigned>(std::countr_zero(options.receive_entries)));
    Qp::log_rq_stride::set(
        qp, static_cast<unsigned>(std::countr_zero(options.receive_stride / wire::kSegmentBytes)));
    Qp::cqn_rcv::set(qp, q.view.receive_completions.cqn);
  } else {
    Qp::rq_type::set(qp, static_cast<unsigned>(prm::ReceiveQueueType::none));
    Qp::cqn_rcv::set(qp, q.view.send_completions.cqn);
  }
  Qp::dbr_umem_valid::set(qp, 1);
  Qp::dbr_umem_id::set(qp, record.umem_id);
  Qp::dbr_addr::set(qp, record.offset);
  Qp::send_dbr_mode::set(qp, static_cast<unsigned>(options.doorbell == DoorbellMode::no_record
                                                       ? prm::SendDoorbellMode::no_record_external
                                                       : prm::SendDoorbellMode::record));
  Qp::ts_format::set(qp, static_cast<unsigned>(prm::TimestampFormat::device_default));
  q.object = DevxObject(q.domain.context().get(), VerbsCall::devx_create_qp, in, out, describe(options));
  q.view.qpn = prm::CreateQpOut::qpn::get(out.data());
}

DevxQueue::~DevxQueue() = default;

std::uint32_t DevxQueue::qpn() const { return impl_->view.qpn; }
QueueAddress DevxQueue::local_address() const { return impl_->address; }
const DevxQueueView& DevxQueue::view() const { return impl_->view; }
const ProtectionDomain& DevxQueue::domain() const { return impl_->domain; }

ConnectionPlan DevxQueue::connect(const QueueAddress& remote, const ConnectionParameters& parameters) {
  Impl& q = *impl_;
  if (q.connected) {
    throw Error(ErrorKind::bad_argument, "the queue is connected already", "Make a new one for another peer");
  }
  ConnectionPlan plan = plan_connection(q.address, remote, parameters);
  const Context& context = q.domain.context();
  TransitionFacts facts;
  facts.qpn = q.view.qpn;
  facts.port = context.port();
  facts.gid_index = static_cast<std::uint8_t>(context.gid().entry.index);
  facts.send_psn = q.address.psn;
  facts.remote_access = q.options.remote_access;
  if (context.link() == LinkLayer::ethernet) facts.ethernet = resolve_ethernet(q.domain, q.address, plan);

  const std::string pair = describe_pair(q.address, remote);
  std::array<std::uint8_t, prm::ModifyQpOut::kBytes> out{};
  q.object.modify(VerbsCall::devx_modify_qp, make_reset_to_init(facts), out, "RST2INIT of " + pair);
  q.object.modify(VerbsCall::devx_modify_qp, make_init_to_rtr(facts, plan), out, "INIT2RTR of " + pair);
  q.object.modify(VerbsCall::devx_modify_qp, make_rtr_to_rts(facts, plan), out, "RTR2RTS of " + pair);
  q.connected = true;
  return plan;
}

void DevxQueue::fail() {
  Impl& q = *impl_;
  std::array<std::uint8_t, prm::StopQpIn::kBytes> in{};
  std::array<std::uint8_t, prm::StopQpOut::kBytes> out{};
  prm::StopQpIn::opcode::set(in.data(), static_cast<unsigned>(prm::Opcode::to_error_qp));
  prm::StopQpIn::qpn::set(in.data(), q.view.qpn);
  q.object.modify(VerbsCall::devx_modify_qp, in, out, "2ERR");
}

}  // namespace belfry::host
