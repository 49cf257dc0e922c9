#include "softnic/firmware/nic.hpp"

#include <cerrno>
#include <ctime>

#include "softnic/fabric/make_fabric.hpp"
#include "softnic/firmware/doorbell.hpp"
#include "softnic/firmware/failure.hpp"
#include "softnic/firmware/memory_fault.hpp"
#include "softnic/firmware/nic_core.hpp"
#include "softnic/transport/receive.hpp"
#include "softnic/transport/requester.hpp"

namespace belfry::softnic {

namespace {

/// The first keys are left out: 0x100 ends receive lists, and small numbers are likely mistakes.
constexpr std::uint32_t kFirstKeyRow = 16;
constexpr std::uint32_t kMostKeyRows = 1u << 24;
/// Frames that one poll takes from the fabric.
constexpr std::size_t kFrameBudget = 64;

/// The stages, once, over every queue that has work.
std::size_t run_once(NicCore& core) {
  core.time_known = false;
  core.next_timer = 0;
  core.in_hand.qp = core.in_hand.requester = nullptr;
  std::size_t work = scan_doorbells(core);
  // Mail before timers: an answer that is here already is not waited for any longer.
  PacketReceiver receiver(core);
  const std::size_t frames = core.fabric->poll(receiver, kFrameBudget);
  receiver.settle();
  core.more_mail = frames == kFrameBudget;
  work += frames;
  for (std::size_t i = 0; i < core.sending.size();) {
    QueuePair& qp = *core.sending[i];
    work += run_send_queue(core, qp);
    if (has_send_work(qp)) {
      ++i;
      continue;
    }
    if (qp.state == QpState::sqd && !qp.drain_reported) {
      qp.drain_reported = true;
      if (qp.context.drained_event) report(qp, AsyncEvent::sq_drained);
    }
    qp.queued = false;
    core.sending[i] = core.sending.back();
    core.sending.pop_back();
  }
  if (!core.owing.empty()) work += send_owed(core);
  if (core.in_hand.cq_died) fail_queues_of_dead_cqs(core);
  if (!core.flushing.empty()) work += flush_errored(core);
  return work;
}

}  // namespace

Nic::Nic(const Config& config) : Nic(config, make_fabric(config)) {}

Nic::Nic(const Config& config, std::unique_ptr<Fabric> port)
    : impl_(std::make_unique<Impl>(config, std::move(port))) {
  memory_fault::install();
}

Nic::~Nic() = default;

const Config& Nic::config() const { return impl_->config; }
const DeviceIdentity& Nic::device(unsigned index) const { return impl_->devices.at(index); }

Result<std::uint32_t> Nic::alloc_pd(unsigned device, const void* owner) {
  ControlLock guard(*impl_, ControlLock::While::a_poll_waits);
  if (device >= impl_->devices.size()) return Errno{EINVAL};
  auto pd = std::make_unique<ProtectionDomain>();
  pd->device = device;
  pd->owner = owner;
  const ProtectionDomain* made = impl_->pds.insert(std::move(pd));
  if (!made) return Errno{ENOMEM};
  return made->number;
}

int Nic::dealloc_pd(std::uint32_t pd) {
  ControlLock guard(*impl_);
  ProtectionDomain* found = impl_->pds.find(pd);
  if (!found) return EINVAL;
  if (found->users != 0) return EBUSY;
  impl_->pds.erase(pd);
  return 0;
}

Result<std::uint32_t> Nic::attach_uar(void* page) {
  if (!page || reinterpret_cast<std::uintptr_t>(page) % wire::kUarBytes != 0) return Errno{EINVAL};
  ControlLock guard(*impl_, ControlLock::While::a_poll_waits);
  auto uar = std::make_unique<Uar>();
  uar->page = static_cast<unsigned char*>(page);
  const Uar* made = impl_->uars.insert(std::move(uar));
  if (!made) return Errno{ENOMEM};
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(made->page + kUarTagOffset))
      .store(kUarTag | made->number);
  return made->number;
}

int Nic::detach_uar(std::uint32_t uar) {
  ControlLock guard(*impl_);
  const Uar* found = impl_->uars.find(uar);
  if (!found) return EINVAL;
  if (!found->qps.empty() || !found->cqs.empty() || found->gpu_users != 0) return EBUSY;
  impl_->uars.erase(uar);
  return 0;
}

Result<std::uint32_t> Nic::create_mkey(const MkeyAttributes& a) {
  ControlLock guard(*impl_, ControlLock::While::a_poll_waits);
  ProtectionDomain* pd = impl_->pds.find(a.pd);
  if (!pd || pd->device != a.device || pd->owner != a.owner || (a.length != 0 && !a.memory))
    return Errno{EINVAL};
  if (a.address + a.length < a.address) return Errno{EINVAL};
  if (impl_->keys_used >= impl_->config.limits.mkeys) return Errno{ENOMEM};
  std::uint32_t row;
  if (impl_->free_keys.size() > 256 || (impl_->keys.size() >= kMostKeyRows && !impl_->free_keys.empty())) {
    row = impl_->free_keys.front();
    impl_->free_keys.pop_front();
  } else {
    if (impl_->keys.size() >= kMostKeyRows) return Errno{ENOMEM};
    row = static_cast<std::uint32_t>(impl_->keys.size());
    impl_->keys.emplace_back();
  }
  impl_->keys[row] = {
      a.address, a.length,      static_cast<unsigned char*>(a.memory), (row << 8) | a.variant, a.pd,
      a.access,  a.memory_owner};
  if (is_gpu(a.memory_owner)) impl_->gpu_payload.add(impl_->keys[row]);
  impl_->gpu.note_change();
  ++pd->users;
  ++impl_->keys_used;
  return impl_->keys[row].key;
}

int Nic::destroy_mkey(std::uint32_t key) {
  const int error = forget_mkey(key);
  if (error == 0) impl_->gpu.settle();
  return error;
}

int Nic::forget_mkey(std::uint32_t key) {
  ControlLock guard(*impl_);
  const std::uint32_t row = key >> 8;
  if (key == 0 || row >= impl_->keys.size() || impl_->keys[row].key != key) return EINVAL;
  --impl_->pds.find(impl_->keys[row].pd)->users;
  if (is_gpu(impl_->keys[row].owner)) impl_->gpu_payload.remove(impl_->keys[row]);
  impl_->keys[row] = {};
  impl_->gpu.note_change();
  ++impl_->key_epoch;
  impl_->free_keys.push_back(row);
  --impl_->keys_used;
  return 0;
}

MemoryOwner Nic::owner_of(const void* address, std::size_t bytes) {
  return impl_->gpu.owner_of(address, bytes);
}

std::size_t Nic::poll() {
  NicCore& core = *impl_;
  std::lock_guard guard(core.lock);
  std::size_t work = 0;
  if (survive_faults([&] { work = run_once(core); })) return work;
  take_fault(core);
  return 1;
}

std::uint64_t Nic::next_timer() const { return impl_->next_timer; }
Fabric& Nic::fabric() { return *impl_->fabric; }

namespace {

std::uint64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

NicCore::NicCore(const Config& c, std::unique_ptr<Fabric> port)
    : config(c),
      fabric(std::move(port)),
      keys(kFirstKeyRow),
      pds(1, c.limits.pds),
      cqs(1, c.limits.cqs),
      uars(1, 1u << 20),
      clock(&monotonic_ns),
      gpu(*this) {
  for (unsigned i = 0; i < c.devices; ++i) devices.push_back(identify(c, i));
}

void NicCore::forget(QueuePair& qp) {
  std::erase(sending, &qp);
  std::erase(owing, &qp);
  std::erase(flushing, &qp);
  qp.queued = false;
  qp.responder.in_owed_list = false;
  if (in_hand.qp == &qp) in_hand.qp = nullptr;
  if (in_hand.requester == &qp) in_hand.requester = nullptr;
  ++epoch;
}

}  // namespace belfry::softnic
