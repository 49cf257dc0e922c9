// Queue pairs by mailbox.

#include <bit>
#include <cstring>

#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/wqe.hpp"
#include "softnic/uverbs/device_attributes.hpp"
#include "softnic/uverbs/devx_objects.hpp"

namespace belfry::softnic {

namespace prm = wire::prm;

namespace {

using Qpc = prm::QpContext;
using Path = prm::AddressPath;

/// Rings of the two queues and their doorbell record.
struct QueuePlaces {
  UmemPlace queues;
  UmemPlace record;
};

/// Sizes: the receive queue comes first in the buffer, the send queue behind it.
PrmOutcome read_sizes(const std::uint8_t* qpc, QpAttributes& attributes) {
  switch (static_cast<prm::ReceiveQueueType>(Qpc::rq_type::get(qpc))) {
    case prm::ReceiveQueueType::regular:
      attributes.receive_entries = 1u << Qpc::log_rq_size::get(qpc);
      attributes.receive_stride = wire::kSegmentBytes << Qpc::log_rq_stride::get(qpc);
      break;
    case prm::ReceiveQueueType::none:
      break;
    default:
      return bad_parameter(DevxSyndrome::not_supported);
  }
  if (Qpc::no_sq::get(qpc) == 0) attributes.send_blocks = 1u << Qpc::log_sq_size::get(qpc);
  return {};
}

PrmOutcome place_queues(FileState& file, const Mailbox& mailbox, QpAttributes& attributes,
                        QueuePlaces& places) {
  using In = prm::CreateQpIn;
  const std::uint8_t* qpc = In::qpc::at(mailbox.in());
  const std::uint64_t receive_bytes = std::uint64_t{attributes.receive_entries} * attributes.receive_stride;
  const std::uint64_t bytes = receive_bytes + std::uint64_t{attributes.send_blocks} * wire::kBlockBytes;
  const std::uint32_t umem = In::wq_umem_id::get(mailbox.in());
  if (bytes != 0) {
    const PrmOutcome placed =
        place_in_umem(file, umem, In::wq_umem_offset::get(mailbox.in()), bytes, true, places.queues);
    if (!placed.ok()) return placed;
    attributes.receive_queue = places.queues.memory;
    attributes.queues_owner = places.queues.owner;
    attributes.send_queue = static_cast<std::byte*>(places.queues.memory) + receive_bytes;
  }
  // Without a record for sends one may still be there, for receives.
  const PrmOutcome placed = place_in_umem(file, Qpc::dbr_umem_id::get(qpc), Qpc::dbr_addr::get(qpc),
                                          sizeof(wire::QpDoorbellRecord), true, places.record);
  if (!placed.ok() && !(attributes.no_record && attributes.receive_entries == 0)) return placed;
  attributes.doorbell_record = places.record.memory;
  attributes.record_owner = places.record.owner;
  return {};
}

void read_access(const std::uint8_t* qpc, QpModify& change) {
  std::uint32_t access = kAccessLocalWrite;
  if (Qpc::rre::get(qpc) != 0) access |= kAccessRemoteRead;
  if (Qpc::rwe::get(qpc) != 0) access |= kAccessRemoteWrite;
  if (Qpc::rae::get(qpc) != 0) access |= kAccessRemoteAtomic;
  change.access = access;
}

/// Optional parameters that more than one transition takes.
void read_optional(const Mailbox& mailbox, const QpSnapshot& now, QpModify& change) {
  const std::uint8_t* qpc = prm::ModifyQpIn::qpc::at(mailbox.in());
  const std::uint32_t mask = prm::ModifyQpIn::opt_param_mask::get(mailbox.in());
  std::uint32_t access = now.access;
  const auto choose = [&](std::uint32_t bit, bool set, std::uint32_t right) {
    if ((mask & bit) != 0) access = set ? access | right : access & ~right;
  };
  choose(prm::kOptRemoteRead, Qpc::rre::get(qpc) != 0, kAccessRemoteRead);
  choose(prm::kOptRemoteWrite, Qpc::rwe::get(qpc) != 0, kAccessRemoteWrite);
  choose(prm::kOptRemoteAtomic, Qpc::rae::get(qpc) != 0, kAccessRemoteAtomic);
  if (access != now.access) change.access = access;
  if ((mask & prm::kOptRnrTimeout) != 0)
    change.min_rnr_timer = static_cast<std::uint8_t>(Qpc::min_rnr_nak::get(qpc));
  const std::uint8_t* path = Qpc::primary_address_path::at(qpc);
  if ((mask & prm::kOptPkeyIndex) != 0)
    change.pkey_index = static_cast<std::uint16_t>(Path::pkey_index::get(path));
  if ((mask & prm::kOptPort) != 0) change.port = static_cast<std::uint8_t>(Path::vhca_port_num::get(path));
}

PathAttributes read_path(const FileState& file, const std::uint8_t* path) {
  const bool ethernet = file.identity.link == LinkLayer::ethernet;
  PathAttributes p;
  p.dlid = static_cast<std::uint16_t>(Path::rlid::get(path));
  p.global = ethernet || Path::grh::get(path) != 0;
  std::memcpy(p.dgid.data(), Path::rgid_rip::at(path), p.dgid.size());
  p.sgid_index = static_cast<std::uint8_t>(Path::src_addr_index::get(path));
  p.sl = static_cast<std::uint8_t>(ethernet ? Path::eth_prio::get(path) : Path::sl::get(path));
  p.traffic_class = static_cast<std::uint8_t>(ethernet ? Path::dscp::get(path) << 2 | Path::ecn::get(path)
                                                       : Path::tclass::get(path));
  p.hop_limit = static_cast<std::uint8_t>(Path::hop_limit::get(path));
  p.flow_label = Path::flow_label::get(path);
  p.source_path_bits = static_cast<std::uint8_t>(Path::mlid::get(path));
  p.static_rate = static_cast<std::uint8_t>(Path::stat_rate::get(path));
  return p;
}

void write_path(const FileState& file, const QpSnapshot& now, std::uint8_t* path) {
  const PathAttributes& p = now.path;
  Path::pkey_index::set(path, now.pkey_index);
  Path::vhca_port_num::set(path, now.port);
  Path::ack_timeout::set(path, now.timeout);
  Path::rlid::set(path, p.dlid);
  Path::grh::set(path, p.global ? 1 : 0);
  std::memcpy(Path::rgid_rip::at(path), p.dgid.data(), p.dgid.size());
  Path::src_addr_index::set(path, p.sgid_index);
  Path::hop_limit::set(path, p.hop_limit);
  Path::flow_label::set(path, p.flow_label);
  Path::mlid::set(path, p.source_path_bits);
  Path::stat_rate::set(path, p.static_rate);
  if (file.identity.link == LinkLayer::ethernet) {
    Path::eth_prio::set(path, p.sl);
    Path::dscp::set(path, p.traffic_class >> 2);
    Path::ecn::set(path, p.traffic_class & 3);
  } else {
    Path::sl::set(path, p.sl);
    Path::tclass::set(path, p.traffic_class);
  }
}

/// INIT2RTR: everything that the responder needs.
PrmOutcome read_rtr(const FileState& file, const std::uint8_t* qpc, QpModify& change) {
  change.path_mtu = prm::mtu_bytes(Qpc::mtu::get(qpc));
  if (*change.path_mtu == 0) return bad_parameter(DevxSyndrome::bad_attribute);
  change.path = read_path(file, Qpc::primary_address_path::at(qpc));
  change.destination_qpn = Qpc::remote_qpn::get(qpc);
  change.receive_psn = Qpc::next_rcv_psn::get(qpc);
  change.responder_depth = static_cast<std::uint8_t>(1u << Qpc::log_rra_max::get(qpc));
  change.min_rnr_timer = static_cast<std::uint8_t>(Qpc::min_rnr_nak::get(qpc));
  return {};
}

/// RTR2RTS: everything that the requester needs.
void read_rts(const std::uint8_t* qpc, QpModify& change) {
  change.timeout = static_cast<std::uint8_t>(Path::ack_timeout::get(Qpc::primary_address_path::at(qpc)));
  change.retry_count = static_cast<std::uint8_t>(Qpc::retry_count::get(qpc));
  change.rnr_retry = static_cast<std::uint8_t>(Qpc::rnr_retry::get(qpc));
  change.send_psn = Qpc::next_send_psn::get(qpc);
  change.initiator_depth = static_cast<std::uint8_t>(1u << Qpc::log_sra_max::get(qpc));
}

/// From which state a command leads, and to which. 2RST and 2ERR lead from any.
struct Step {
  prm::Opcode opcode;
  QpState from;
  QpState to;
};

constexpr Step kSteps[] = {
    {prm::Opcode::rst2init_qp, QpState::reset, QpState::init},
    {prm::Opcode::init2init_qp, QpState::init, QpState::init},
    {prm::Opcode::init2rtr_qp, QpState::init, QpState::rtr},
    {prm::Opcode::rtr2rts_qp, QpState::rtr, QpState::rts},
    {prm::Opcode::rts2rts_qp, QpState::rts, QpState::rts},
    {prm::Opcode::sqerr2rts_qp, QpState::sqe, QpState::rts},
};

PrmOutcome read_change(const FileState& file, const Mailbox& mailbox, const QpSnapshot& now,
                       QpModify& change) {
  const std::uint8_t* qpc = prm::ModifyQpIn::qpc::at(mailbox.in());
  const std::uint8_t* path = Qpc::primary_address_path::at(qpc);
  switch (mailbox.opcode()) {
    case prm::Opcode::rst2init_qp:
      read_access(qpc, change);
      change.pkey_index = static_cast<std::uint16_t>(Path::pkey_index::get(path));
      change.port = static_cast<std::uint8_t>(Path::vhca_port_num::get(path));
      return {};
    case prm::Opcode::init2rtr_qp:
      read_optional(mailbox, now, change);
      return read_rtr(file, qpc, change);
    case prm::Opcode::rtr2rts_qp:
      read_optional(mailbox, now, change);
      read_rts(qpc, change);
      return {};
    default:
      read_optional(mailbox, now, change);
      return {};
  }
}

prm::QpcState context_state(QpState state) {
  switch (state) {
    case QpState::sqd:
      return prm::QpcState::sq_drained;
    case QpState::sqe:
      return prm::QpcState::sq_error;
    default:
      return static_cast<prm::QpcState>(state);
  }
}

}  // namespace

PrmOutcome devx_create_qp(FileState& file, Mailbox& mailbox, DevxObject& object) {
  const std::uint8_t* qpc = prm::CreateQpIn::qpc::at(mailbox.in());
  if (static_cast<prm::ServiceType>(Qpc::st::get(qpc)) != prm::ServiceType::rc) {
    return bad_parameter(DevxSyndrome::not_supported);
  }
  const auto mode = static_cast<prm::SendDoorbellMode>(Qpc::send_dbr_mode::get(qpc));
  if (mode != prm::SendDoorbellMode::record && mode != prm::SendDoorbellMode::no_record_external) {
    return bad_parameter(DevxSyndrome::not_supported);
  }
  QpAttributes attributes;
  attributes.device = file.device;
  attributes.owner = &file;
  attributes.pd = Qpc::pd::get(qpc);
  attributes.no_record = mode == prm::SendDoorbellMode::no_record_external;
  attributes.uar = Qpc::uar_page::get(qpc);
  attributes.send_cq = Qpc::cqn_snd::get(qpc);
  attributes.receive_cq = Qpc::cqn_rcv::get(qpc);
  attributes.user_index = Qpc::user_index::get(qpc);
  attributes.sink = &object;
  QueuePlaces places;
  PrmOutcome outcome = read_sizes(qpc, attributes);
  if (outcome.ok()) outcome = place_queues(file, mailbox, attributes, places);
  if (!outcome.ok()) return outcome;
  const Result<std::uint32_t> number = file.nic.create_qp(attributes);
  if (!number) return outcome_of(number.error());
  object.number = *number;
  if (places.queues.umem != nullptr) object.hold(*places.queues.umem);
  if (places.record.umem != nullptr) object.hold(*places.record.umem);
  return {};
}

PrmOutcome devx_modify_qp(FileState& file, Mailbox& mailbox, std::uint32_t number) {
  QpModify change;
  if (mailbox.opcode() == prm::Opcode::to_reset_qp || mailbox.opcode() == prm::Opcode::to_error_qp) {
    change.state = mailbox.opcode() == prm::Opcode::to_reset_qp ? QpState::reset : QpState::error;
    return outcome_of(file.nic.modify_qp(number, change));
  }
  const Result<QpSnapshot> now = file.nic.query_qp(number);
  if (!now) return outcome_of(now.error());
  for (const Step& step : kSteps) {
    if (step.opcode != mailbox.opcode()) continue;
    if (now->state != step.from) return {prm::Status::bad_qp_state, DevxSyndrome::bad_state};
    change.state = step.to;
  }
  if (const PrmOutcome outcome = read_change(file, mailbox, *now, change); !outcome.ok()) return outcome;
  if (change.port && *change.port != kPort) return bad_parameter(DevxSyndrome::bad_port);
  if (change.pkey_index && *change.pkey_index >= pkey_count(file.identity.link)) {
    return bad_parameter(DevxSyndrome::bad_index);
  }
  const int error = file.nic.modify_qp(number, change);
  return error == EINVAL ? bad_parameter(DevxSyndrome::bad_attribute) : outcome_of(error);
}

PrmOutcome devx_query_qp(FileState& file, Mailbox& mailbox, std::uint32_t number) {
  const Result<QpSnapshot> now = file.nic.query_qp(number);
  if (!now) return outcome_of(now.error());
  std::uint8_t* qpc = prm::QueryQpOut::qpc::at(mailbox.out());
  Qpc::state::set(qpc, static_cast<std::uint64_t>(context_state(now->state)));
  Qpc::st::set(qpc, static_cast<std::uint64_t>(prm::ServiceType::rc));
  Qpc::pm_state::set(qpc, static_cast<std::uint64_t>(prm::PathMigration::migrated));
  Qpc::mtu::set(qpc, prm::mtu_code(now->path_mtu));
  Qpc::remote_qpn::set(qpc, now->destination_qpn);
  Qpc::next_rcv_psn::set(qpc, now->receive_psn);
  Qpc::next_send_psn::set(qpc, now->send_psn);
  Qpc::log_sra_max::set(qpc, log_of(now->initiator_depth));
  Qpc::log_rra_max::set(qpc, log_of(now->responder_depth));
  Qpc::min_rnr_nak::set(qpc, now->min_rnr_timer);
  Qpc::retry_count::set(qpc, now->retry_count);
  Qpc::rnr_retry::set(qpc, now->rnr_retry);
  Qpc::rre::set(qpc, (now->access & kAccessRemoteRead) != 0 ? 1 : 0);
  Qpc::rwe::set(qpc, (now->access & kAccessRemoteWrite) != 0 ? 1 : 0);
  Qpc::rae::set(qpc, (now->access & kAccessRemoteAtomic) != 0 ? 1 : 0);
  Qpc::sw_sq_wqebb_counter::set(qpc, now->send_producer);
  Qpc::hw_sq_wqebb_counter::set(qpc, now->send_consumer);
  write_path(file, *now, Qpc::primary_address_path::at(qpc));
  return {};
}

}  // namespace belfry::softnic
