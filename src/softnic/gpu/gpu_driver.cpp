#include "softnic/gpu/gpu_driver.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "softnic/firmware/failure.hpp"
#include "softnic/firmware/nic_core.hpp"
#include "softnic/transport/requester.hpp"

namespace belfry::softnic {

namespace {

using namespace std::chrono_literals;

/// While the engine runs, the thread only waits for its end.
constexpr auto kAwakePause = 20us;
constexpr auto kLongestSettle = 10s;

}  // namespace

GpuDriver::GpuDriver(NicCore& core, MemoryOwner gpu, std::unique_ptr<GpuEngine> engine,
                     const std::atomic<std::uint64_t>& changes, GpuPins& pins, GpuDoorbellPages& pages)
    : core_(core), gpu_(gpu), engine_(std::move(engine)), changes_(changes), pins_(pins), pages_(pages) {
  // The application's signals are for the application's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), ("belfry-gpu" + std::to_string(gpu_)).c_str());
}

GpuDriver::~GpuDriver() { stop(); }

void GpuDriver::stop() {
  quit_ = true;
  if (thread_.joinable()) thread_.join();
}

void GpuDriver::reach(MemoryOwner gpu) {
  if (gpu == gpu_) return;
  std::string error;
  if (engine_->reach(gpu, error)) {
    const std::lock_guard lock(mutex_);
    reachable_.insert(gpu);
    return;
  }
  std::fprintf(stderr,
               "belfry softnic: GPU %d cannot reach the memory of GPU %d (%s): its queues get access errors "
               "there. Place both ends on GPUs with peer access, which `nvidia-smi topo -p2p rw` lists\n",
               gpu_, gpu, error.c_str());
}

bool GpuDriver::reaches(MemoryOwner gpu) {
  const std::lock_guard lock(mutex_);
  return gpu == gpu_ || reachable_.contains(gpu);
}

std::uint64_t GpuDriver::ask() {
  const std::lock_guard lock(mutex_);
  asking_.store(true, std::memory_order_release);
  return ++asked_;
}

void GpuDriver::await(std::uint64_t asked) {
  std::unique_lock lock(mutex_);
  settled_.wait_for(lock, kLongestSettle, [&] { return served_ >= asked || quit_; });
}

void GpuDriver::run() {
  while (!quit_) {
    if (awake_) {
      run_awake();
    } else {
      run_asleep();
    }
  }
  if (awake_) engine_->stop();
  for (int i = 0; awake_ && engine_->running() && i < 100'000; ++i) std::this_thread::sleep_for(kAwakePause);
  settled_.notify_all();
}

void GpuDriver::run_awake() {
  if (engine_->attention() != seen_attention_) hear_failures();
  if (!engine_->running()) {
    reap();
    return;
  }
  const bool changed = changes_.load(std::memory_order_acquire) != seen_changes_;
  if (!stopping_ && (changed || asking_.load(std::memory_order_acquire))) {
    stopping_ = true;
    if (!engine_->stop()) give_up("stopping the engine");
  }
  std::this_thread::sleep_for(kAwakePause);
}

void GpuDriver::run_asleep() {
  const bool asked = asking_.load(std::memory_order_acquire);
  if (changes_.load(std::memory_order_acquire) != seen_changes_) refresh();
  if (asked) {
    std::uint64_t served;
    {
      const std::lock_guard lock(mutex_);
      served = asked_;
      asking_.store(false, std::memory_order_relaxed);
    }
    // Once more: what was destroyed before the question is known by now.
    refresh();
    if (!broken_) apply_tables();
    {
      const std::lock_guard lock(mutex_);
      served_ = served;
    }
    settled_.notify_all();
  }
  if (!broken_ && (due_ || rung())) return launch();
  wait_a_little();
}

/// Takes the NIC's objects as they are.
void GpuDriver::refresh() {
  seen_changes_ = changes_.load(std::memory_order_acquire);
  GpuTables fresh;
  {
    ControlLock guard(core_, ControlLock::While::a_poll_waits);
    fresh = take_gpu_snapshot(core_, gpu_);
  }
  {
    const std::lock_guard lock(mutex_);
    drop_far_keys(fresh, reachable_);
  }
  for (std::size_t slot = 0; slot < fresh.queues.size(); ++slot) {
    const bool was_flushing = slot < tables_.queues.size() &&
                              tables_.queues[slot].generation == fresh.queues[slot].generation &&
                              tables_.queues[slot].state == GpuQueueState::flushing;
    if (fresh.queues[slot].generation != 0 && fresh.queues[slot].state == GpuQueueState::flushing &&
        !was_flushing)
      due_ = true;
  }
  tables_ = std::move(fresh);
  stale_ = true;
}

/// Gives the engine the tables. \pre it does not run
void GpuDriver::apply_tables() {
  if (!stale_) return;
  const std::vector<HostRange> refused = pins_.update(*engine_, tables_.host_ranges);
  if (!refused.empty()) {
    std::fprintf(stderr, "belfry softnic: %zu of %zu ranges of host memory are out of reach of GPU %d (%s)\n",
                 refused.size(), tables_.host_ranges.size(), gpu_, engine_->error().c_str());
    drop_keys(tables_, refused);
  }
  if (!look_at_page()) return;
  generations_.resize(std::max(generations_.size(), tables_.queues.size()));
  told_.resize(generations_.size());
  for (std::uint32_t slot = 0; slot < tables_.queues.size(); ++slot) {
    if (generations_[slot] == tables_.queues[slot].generation) continue;
    generations_[slot] = tables_.queues[slot].generation;
    engine_->progress(slot) = {};
    forget_doorbells(tables_.queues[slot]);
    told_[slot] = false;
  }
  cq_generations_.resize(std::max(cq_generations_.size(), tables_.cq_generations.size()));
  for (std::uint32_t slot = 0; slot < tables_.cq_generations.size(); ++slot) {
    if (cq_generations_[slot] == tables_.cq_generations[slot]) continue;
    cq_generations_[slot] = tables_.cq_generations[slot];
    if (!engine_->reset_completions(slot)) return give_up("resetting a completion queue");
  }
  const auto cqs = static_cast<std::uint32_t>(tables_.cq_generations.size());
  if (!engine_->update(tables_.queues, tables_.keys, cqs)) return give_up("giving the engine its tables");
  stale_ = false;
}

/// Takes a copy of what kernels have rung in GPU memory.
bool GpuDriver::look_at_page() {
  page_ = pages_.find(gpu_);
  if (page_ == nullptr || page_->look()) return true;
  give_up("looking at doorbells in GPU memory");
  return false;
}

/// What an earlier queue of that number rang there. The NIC forgets what is in UAR pages.
void GpuDriver::forget_doorbells(const GpuQueuePair& q) {
  for (const std::uint64_t* doorbell : q.doorbells)
    if (page_ != nullptr && page_->holds(doorbell) &&
        wire::doorbell_qpn(page_->value_of(doorbell)) == q.number)
      page_->clear(doorbell);
}

std::uint64_t GpuDriver::rung_at(const GpuWatch& watch, unsigned i) const {
  if (watch.on_gpu[i]) return page_->value_of(watch.doorbells[i]);
  return std::atomic_ref(*const_cast<std::uint64_t*>(watch.doorbells[i])).load(std::memory_order_acquire);
}

/// Whether a register holds something that the engine has not seen.
bool GpuDriver::rung() {
  if (!look_at_page()) return false;
  for (const GpuWatch& watch : tables_.watched) {
    const bool known =
        watch.slot < generations_.size() && generations_[watch.slot] == tables_.queues[watch.slot].generation;
    for (unsigned i = 0; i < kGpuRegisters; ++i)
      if (rung_at(watch, i) != (known ? engine_->progress(watch.slot).seen[i] : 0)) return true;
  }
  return false;
}

void GpuDriver::launch() {
  apply_tables();
  if (broken_) return;
  due_ = false;
  stopping_ = false;
  idle_turns_ = 0;
  if (!engine_->launch()) return give_up("starting the engine");
  awake_ = true;
}

void GpuDriver::reap() {
  awake_ = false;
  if (engine_->attention() != seen_attention_) hear_failures();
  for (std::uint32_t slot = 0; slot < tables_.queues.size(); ++slot) {
    const GpuProgress& progress = engine_->progress(slot);
    if (tables_.queues[slot].generation != 0 && progress.next < progress.producer) due_ = true;
  }
}

void GpuDriver::hear_failures() {
  seen_attention_ = engine_->attention();
  for (std::uint32_t slot = 0; slot < tables_.queues.size(); ++slot) {
    if (tables_.queues[slot].generation == 0 || told_[slot]) continue;
    const GpuProgress& progress = engine_->progress(slot);
    auto& failed = const_cast<std::uint32_t&>(progress.failed);
    auto& overrun = const_cast<std::uint32_t&>(progress.overrun);
    if (std::atomic_ref(failed).load() == 0 && std::atomic_ref(overrun).load() == 0) continue;
    told_[slot] = true;
    fail_queue(slot, tables_.queues[slot].generation, progress);
  }
}

/// The NIC learns of it as from its own engine, and so does the other end.
void GpuDriver::fail_queue(std::uint32_t slot, std::uint64_t generation, const GpuProgress& progress) {
  ControlLock guard(core_);
  for (QueuePair* qp : core_.gpu_qps) {
    if (qp->gpu_slot != slot || qp->gpu_generation != generation) continue;
    const auto syndrome = static_cast<wire::Syndrome>(progress.failed & 0xff);
    if (progress.overrun != 0) {
      report(*qp, AsyncEvent::qp_fatal);
      if (qp->send_cq->attributes().sink != nullptr)
        qp->send_cq->attributes().sink->async(AsyncEvent::cq_error, qp->send_cq->number);
    }
    QueuePair* peer = find_direct_peer(core_, *qp);
    enter_error(core_, *qp, progress.overrun != 0 ? wire::Syndrome::local_qp_operation : syndrome);
    const bool access = syndrome == wire::Syndrome::remote_access;
    if (peer == nullptr || (!access && syndrome != wire::Syndrome::remote_invalid_request)) return;
    report(*peer, access ? AsyncEvent::qp_access_error : AsyncEvent::qp_request_error);
    enter_error(core_, *peer, wire::Syndrome::local_access);
    return;
  }
}

/// CUDA does not recover from most of its failures: the engine stays away, and queues in GPU memory stand
/// still.
void GpuDriver::give_up(const std::string& what) {
  std::fprintf(stderr, "belfry softnic: the engine on GPU %d stops: %s: %s\n", gpu_, what.c_str(),
               engine_->error().c_str());
  broken_ = true;
}

/// As an idle NIC waits: spin, yield, sleep.
void GpuDriver::wait_a_little() {
  const IdlePolicy& policy = core_.config.idle;
  ++idle_turns_;
  if (idle_turns_ < 2000) return;
  if (idle_turns_ < 20'000) return std::this_thread::yield();
  std::this_thread::sleep_for(idle_turns_ < 30'000 ? policy.sleep_first : policy.sleep_most);
}

}  // namespace belfry::softnic
