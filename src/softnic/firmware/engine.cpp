#include "softnic/firmware/engine.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "softnic/fabric/fabric.hpp"

namespace belfry::softnic {

namespace {

using Clock = std::chrono::steady_clock;

/// Where an idle NIC stands on its way from spinning to sleeping.
class IdleState {
 public:
  explicit IdleState(const IdlePolicy& policy) : policy_(policy) {}

  void worked() {
    idle_ = false;
    polls_ = 0;
    sleep_ = policy_.sleep_first;
  }

  /// Waits as long as this stage of idleness says.
  void wait(Nic& nic) {
    // The clock is read once in a while only, and nothing pauses: this short stage is for latency, and a
    // pause instruction takes as long as a poll.
    if (idle_ && ++polls_ % 64 != 0 && !yielding_) return;
    const auto now = Clock::now();
    if (!idle_) {
      idle_ = true;
      yielding_ = false;
      since_ = now;
      return;
    }
    const auto idle_for = now - since_;
    if (idle_for < policy_.spin) return;
    yielding_ = true;
    if (idle_for < policy_.spin + policy_.yield) return std::this_thread::yield();
    // The doorbell is a plain store into a page: nothing can wake a sleeping NIC for it, so a sleep is
    // bounded. The fabric can, and ends it early.
    nic.fabric().wait(until_timer(nic, sleep_));
    sleep_ = std::min(sleep_ * 2, policy_.sleep_most);
  }

 private:
  static std::chrono::nanoseconds until_timer(const Nic& nic, std::chrono::nanoseconds most) {
    const std::uint64_t timer = nic.next_timer();
    if (timer == 0) return most;
    const auto now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    const auto left = static_cast<std::int64_t>(timer) - now;
    return std::clamp(std::chrono::nanoseconds(left), std::chrono::nanoseconds(0), most);
  }

  const IdlePolicy& policy_;
  bool idle_ = false;
  bool yielding_ = false;
  unsigned polls_ = 0;
  Clock::time_point since_{};
  std::chrono::microseconds sleep_{0};
};

}  // namespace

Engine::Engine(Nic& nic) : nic_(nic) {
  // Signals are the application's: its handlers must not run on a thread it knows nothing of.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "belfry-nic");
}

Engine::~Engine() {
  stop_.store(true, std::memory_order_relaxed);
  nic_.fabric().wake();
  thread_.join();
}

void Engine::run() {
  IdleState idle(nic_.config().idle);
  idle.worked();
  while (!stop_.load(std::memory_order_relaxed)) {
    if (nic_.poll() != 0) {
      idle.worked();
    } else {
      idle.wait(nic_);
    }
  }
}

}  // namespace belfry::softnic
