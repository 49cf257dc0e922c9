#include "softnic/firmware/doorbell.hpp"

#include <atomic>

#include "belfry/port/memory.hpp"

namespace belfry::softnic {

namespace {

std::atomic_ref<std::uint64_t> register_at(Uar& uar, std::uint32_t offset) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(uar.page + offset));
}

std::uint32_t half_offset(unsigned half) {
  return wire::kUarFirstRegister + half * wire::kUarRegisterHalfBytes;
}

/// \param index the producer's low 16 bits: one past the last block posted
bool announce(NicCore& core, QueuePair& qp, std::uint16_t index) {
  const auto ahead = static_cast<std::uint16_t>(index - static_cast<std::uint16_t>(qp.producer));
  if (ahead == 0) return false;
  // Never more outstanding than the queue holds; an index that says otherwise is an old doorbell that
  // came late, or nonsense, and the blocks behind it are not to be trusted.
  if (qp.producer + ahead - qp.completed > qp.attributes.send_blocks) return false;
  qp.producer += ahead;
  if (qp.can_send()) {
    core.queue_sending(qp);
    __builtin_prefetch(qp.block(qp.next));
  }
  return true;
}

/// Record and WQE lie in the poster's cache: both misses run at once, beside the register's.
void fetch_early(const QueuePair& qp) {
  if (qp.attributes.send_blocks == 0) return;
  __builtin_prefetch(qp.attributes.doorbell_record);
  __builtin_prefetch(qp.block(qp.producer));
}

bool look_at_record(NicCore& core, QueuePair& qp) {
  if (qp.attributes.send_blocks == 0 || !qp.attributes.doorbell_record || qp.gone) return false;
  core.in_hand.qp = &qp;
  auto* word = static_cast<std::uint32_t*>(qp.attributes.doorbell_record) + 1;
  // Acquire: the poster stores WQEs before the record (its own barrier), so WQEs up to the index that
  // is read here are visible.
  const std::uint32_t record =
      swap_bytes(std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire));
  return announce(core, qp, static_cast<std::uint16_t>(record));
}

std::size_t look_at_records(NicCore& core, Uar& uar) {
  std::size_t news = 0;
  for (QueuePair* qp : uar.qps)
    if (!qp->attributes.no_record) news += look_at_record(core, *qp);
  return news;
}

/// A change of one register. \return QPs with news
std::size_t take_send_doorbell(NicCore& core, Uar& uar, std::uint64_t value) {
  QueuePair* named = core.find_qp(wire::doorbell_qpn(value));
  if (!named || named->uar != &uar || named->on_gpu()) return 0;
  uar.recent = named;
  fetch_early(*named);
  return named->attributes.no_record ? announce(core, *named, wire::doorbell_index(value)) : 0;
}

/// Whether a value is none of the CPU's business: the GPU engine has to find it there.
bool is_for_gpu(const NicCore& core, const Uar& uar, std::uint64_t value) {
  if (uar.gpu_users == 0) return false;
  const QueuePair* named = core.find_qp(wire::doorbell_qpn(value));
  return named && named->on_gpu();
}

std::size_t scan_send_registers(NicCore& core, Uar& uar) {
  std::size_t news = 0;
  bool changed = false;
  std::uint64_t values[kDoorbellHalves];
  for (unsigned half = 0; half < kDoorbellHalves; ++half) {
    // Acquire: pairs with the poster's barrier before its doorbell; the record and, without one, the
    // WQEs are visible once the doorbell is.
    values[half] = register_at(uar, half_offset(half)).load(std::memory_order_acquire);
    if (values[half] == uar.seen_send[half]) continue;
    port::host_memory::note_doorbell(values[half]);
    changed = true;
    news += take_send_doorbell(core, uar, values[half]);
  }
  if (!changed) {
    // While nothing is rung, the lines that the next doorbell will ask for are kept near. Nothing is acted
    // on before the doorbell is seen.
    if (uar.recent) fetch_early(*uar.recent);
    return news;
  }
  // QPs that share a register overwrite each other's values: a change is a hint to look at them all. Only
  // then is it seen: where a record's memory is gone, the rest of the page is looked at again.
  news += look_at_records(core, uar);
  for (unsigned half = 0; half < kDoorbellHalves; ++half) {
    const bool keep = news != 0 || values[half] == uar.seen_send[half] || is_for_gpu(core, uar, values[half]);
    uar.seen_send[half] = seen_after_look(register_at(uar, half_offset(half)), values[half], keep);
  }
  return news;
}

std::size_t scan_arm_register(Uar& uar) {
  const auto at = register_at(uar, wire::kUarCqDoorbell);
  const std::uint64_t value = at.load(std::memory_order_acquire);
  if (value == uar.seen_arm) return 0;
  bool armed = false;
  for (CompletionQueue* cq : uar.cqs) armed = cq->check_arm() || armed;
  uar.seen_arm = seen_after_look(at, value, armed);
  return 1;
}

}  // namespace

std::uint64_t seen_after_look(std::atomic_ref<std::uint64_t> at, std::uint64_t value, bool announced) {
  // A copy: a failed exchange writes what it found there, and that has not been looked at.
  std::uint64_t expected = value;
  return !announced && at.compare_exchange_strong(expected, 0) ? 0 : value;
}

std::size_t scan_doorbells(NicCore& core) {
  std::size_t news = 0;
  core.uars.for_each([&](Uar& uar) {
    if (!uar.qps.empty()) news += scan_send_registers(core, uar);
    if (!uar.cqs.empty()) news += scan_arm_register(uar);
  });
  return news;
}

void forget_doorbells_of_qp(Uar& uar, std::uint32_t qpn) {
  for (unsigned half = 0; half < kDoorbellHalves; ++half) {
    auto at = register_at(uar, half_offset(half));
    std::uint64_t value = at.load(std::memory_order_relaxed);
    // Only a value that names this QP goes, and only if nobody rings meanwhile.
    if (wire::doorbell_qpn(value) == qpn && at.compare_exchange_strong(value, 0)) uar.seen_send[half] = 0;
  }
}

void forget_doorbells_of_cq(Uar& uar, std::uint32_t cqn) {
  auto at = register_at(uar, wire::kUarCqDoorbell);
  std::uint64_t value = at.load(std::memory_order_relaxed);
  const std::uint32_t named = swap_bytes(static_cast<std::uint32_t>(value >> 32));
  if (named == cqn && at.compare_exchange_strong(value, 0)) uar.seen_arm = 0;
}

}  // namespace belfry::softnic
