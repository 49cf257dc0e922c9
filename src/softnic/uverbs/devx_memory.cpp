// Memory keys and completion queues by mailbox.

#include <bit>

#include "belfry/wire/doorbell.hpp"
#include "softnic/uverbs/devx_objects.hpp"

namespace belfry::softnic {

namespace prm = wire::prm;

namespace {

std::uint32_t access_of(const std::uint8_t* context) {
  using C = prm::MkeyContext;
  std::uint32_t access = 0;
  if (C::lw::get(context) != 0) access |= kAccessLocalWrite;
  if (C::rw::get(context) != 0) access |= kAccessRemoteWrite;
  if (C::rr::get(context) != 0) access |= kAccessRemoteRead;
  if (C::a::get(context) != 0) access |= kAccessRemoteAtomic;
  if (C::relaxed_ordering_write::get(context) != 0 || C::relaxed_ordering_read::get(context) != 0) {
    access |= kAccessRelaxedOrdering;
  }
  return access;
}

}  // namespace

PrmOutcome devx_create_mkey(FileState& file, Mailbox& mailbox, DevxObject& object) {
  using In = prm::CreateMkeyIn;
  using C = prm::MkeyContext;
  const std::uint8_t* context = In::memory_key_mkey_entry::at(mailbox.in());
  const auto mode = static_cast<prm::MkeyAccessMode>(C::access_mode_4_2::get(context) << 2 |
                                                     C::access_mode_1_0::get(context));
  // Lists of other keys and physical memory are beyond this device: pages of one umem are not.
  if (mode != prm::MkeyAccessMode::mtt || C::length64::get(context) != 0 || C::free::get(context) != 0) {
    return bad_parameter(DevxSyndrome::not_supported);
  }
  const std::uint32_t access = access_of(context);
  const bool writes = (access & (kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteAtomic)) != 0;
  UmemPlace place;
  const PrmOutcome placed =
      place_in_umem(file, In::mkey_umem_id::get(mailbox.in()), In::mkey_umem_offset::get(mailbox.in()),
                    C::len::get(context), writes, place);
  if (!placed.ok()) return placed;

  MkeyAttributes attributes;
  attributes.device = file.device;
  attributes.owner = &file;
  attributes.pd = C::pd::get(context);
  attributes.address = C::start_addr::get(context);
  attributes.length = C::len::get(context);
  attributes.memory = place.memory;
  attributes.memory_owner = place.owner;
  attributes.access = access;
  attributes.variant = static_cast<std::uint8_t>(C::mkey_7_0::get(context));
  const Result<std::uint32_t> key = file.nic.create_mkey(attributes);
  if (!key) return outcome_of(key.error());
  object.key = *key;
  object.number = *key >> 8;
  object.hold(*place.umem);
  return {};
}

PrmOutcome devx_create_cq(FileState& file, Mailbox& mailbox, DevxObject& object) {
  using In = prm::CreateCqIn;
  using C = prm::CqContext;
  const std::uint8_t* context = In::cq_context::at(mailbox.in());
  const auto entry = static_cast<prm::CqeSize>(C::cqe_sz::get(context));
  if (entry != prm::CqeSize::bytes_64 && entry != prm::CqeSize::bytes_128) {
    return bad_parameter(DevxSyndrome::bad_size);
  }
  if (C::cqe_comp_en::get(context) != 0) return bad_parameter(DevxSyndrome::not_supported);

  CqAttributes attributes;
  attributes.device = file.device;
  attributes.owner = &file;
  attributes.log_entries = C::log_cq_size::get(context);
  attributes.entry_bytes = entry == prm::CqeSize::bytes_128 ? 128 : 64;
  attributes.uar = C::uar_page::get(context);
  attributes.collapsed = C::cc::get(context) != 0;
  attributes.ignore_overrun = C::oi::get(context) != 0;
  attributes.sink = &object;

  // A collapsed CQ touches entry 0 only, but is as large as it says.
  const std::uint64_t bytes = std::uint64_t{attributes.entry_bytes} << attributes.log_entries;
  UmemPlace ring;
  UmemPlace record;
  PrmOutcome placed = place_in_umem(file, In::cq_umem_id::get(mailbox.in()),
                                    In::cq_umem_offset::get(mailbox.in()), bytes, true, ring);
  if (placed.ok()) {
    placed = place_in_umem(file, C::dbr_umem_id::get(context), C::dbr_addr::get(context),
                           sizeof(wire::CqDoorbellRecord), true, record);
  }
  if (!placed.ok()) return placed;
  attributes.buffer = ring.memory;
  attributes.doorbell_record = record.memory;
  attributes.buffer_owner = ring.owner;
  attributes.record_owner = record.owner;
  const Result<std::uint32_t> number = file.nic.create_cq(attributes);
  if (!number) return outcome_of(number.error());
  object.number = *number;
  object.hold(*ring.umem);
  object.hold(*record.umem);
  return {};
}

}  // namespace belfry::softnic
