#include "softnic/firmware/engine.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "softnic/fabric/fabric.hpp"
#include "softnic/firmware/memory_fault.hpp"

namespace belfry::softnic {

namespace {

using Clock = std::chrono::steady_clock;

/// On a machine with fewer cores than spinning threads, a thread waits for the others' slices, 3 ms each.
/// A thread that asks for short slices itself has earlier deadlines and is let in sooner (EEVDF, Linux
/// 6.12; older kernels ignore it).
void ask_for_short_slices() {
  struct {  // struct sched_attr, which the C library of Debian 12 does not have
    std::uint32_t size = sizeof(*this), policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 100'000, deadline = 0, period = 0;  // ns
  } attributes;
  static_assert(sizeof attributes == 48);
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/// After so long the longest sleep is doubled: waking 500 times a second takes 1 % of some virtual cores.
constexpr std::chrono::milliseconds kDeepIdle{250};

/// Sleeps of an idle NIC between two looks at whether its program still runs.
constexpr unsigned kSleepsPerLook = 512;

bool main_thread_has_ended() {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(getpid()));
  std::FILE* file = std::fopen(path, "re");
  if (!file) return false;
  char line[512] = {};
  const std::size_t bytes = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  line[bytes] = 0;
  const char* name_end = std::strrchr(line, ')');
  return name_end && std::strlen(name_end) > 2 && name_end[2] == 'Z';
}

/// Whether every thread but the ended main one is the NIC's own.
bool only_our_threads_run() {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == std::to_string(getpid())) continue;
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    if (name.rfind("belfry-", 0) != 0) return false;
  }
  return !error;
}

/// A process ends with its last thread, and a program does not know of the NIC's. When main() has left by
/// pthread_exit() and no other thread of the program is left, the process ends as it would have.
void end_if_alone() {
  if (main_thread_has_ended() && only_our_threads_run()) std::exit(0);
}

/// A thread that comes back to its core this much later than it should has waited for another thread's
/// slice: there are fewer cores than threads that spin.
constexpr std::chrono::microseconds kCrowdedGap{1000};
/// How long a NIC that met such a gap keeps out of the way before it tries spinning again.
constexpr std::chrono::milliseconds kCrowdedTime{200};
/// On a crowded machine a sleeper is let in before those who spin: it sleeps at once, and shortly.
constexpr std::chrono::microseconds kCrowdedFirstSleep{5};
constexpr std::chrono::microseconds kCrowdedMostSleep{40};

/// Where an idle NIC stands on its way from spinning to sleeping.
class IdleState {
 public:
  explicit IdleState(const IdlePolicy& policy) : policy_(policy) { worked(); }

  void worked() {
    idle_ = false;
    polls_ = 0;
    sleep_ = policy_.sleep_first;
    short_sleep_ = kCrowdedFirstSleep;
  }

  /// Waits as long as this stage of idleness says.
  void wait(Nic& nic) {
    // The clock is read once in a while only, and nothing pauses: this short stage is for latency, and a
    // pause instruction takes as long as a poll.
    if (idle_ && spinning_ && ++polls_ % 64 != 0) return;
    const auto now = Clock::now();
    if (!idle_) return begin(now);
    if (now - last_ > kCrowdedGap) crowded_until_ = now + kCrowdedTime;
    const bool crowded = now < crowded_until_;
    const auto idle_for = now - since_;
    spinning_ = !crowded && idle_for < policy_.spin;
    last_ = now;
    if (!spinning_) rest(nic, idle_for, crowded);
  }

 private:
  void begin(Clock::time_point now) {
    idle_ = spinning_ = true;
    since_ = last_ = now;
  }

  void rest(Nic& nic, Clock::duration idle_for, bool crowded) {
    if (idle_for < policy_.spin + policy_.yield) {
      if (!crowded) return std::this_thread::yield();
      sleep(nic, short_sleep_);
      short_sleep_ = std::min(short_sleep_ * 2, kCrowdedMostSleep);
      return;
    }
    sleep(nic, idle_for > kDeepIdle ? sleep_ * 2 : sleep_);
    sleep_ = std::min(sleep_ * 2, policy_.sleep_most);
  }

  /// The doorbell is a plain store into a page: nothing can wake a sleeping NIC for it, so a sleep is
  /// bounded. The fabric can, and ends it early.
  void sleep(Nic& nic, std::chrono::microseconds most) {
    if (++sleeps_ % kSleepsPerLook == 0) end_if_alone();
    nic.fabric().wait(until_timer(nic, most));
    last_ = Clock::now();  // a sleep is no gap
  }

  static std::chrono::nanoseconds until_timer(const Nic& nic, std::chrono::nanoseconds most) {
    const std::uint64_t timer = nic.next_timer();
    if (timer == 0) return most;
    const auto now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    const auto left = static_cast<std::int64_t>(timer) - now;
    return std::clamp(std::chrono::nanoseconds(left), std::chrono::nanoseconds(0), most);
  }

  const IdlePolicy& policy_;
  bool idle_ = false;
  bool spinning_ = false;
  unsigned polls_ = 0;
  Clock::time_point since_{};  ///< begin of this idleness
  Clock::time_point last_{};   ///< when the thread was last seen to run
  Clock::time_point crowded_until_{};
  std::chrono::microseconds sleep_{0};
  std::chrono::microseconds short_sleep_{0};
  unsigned sleeps_ = 0;
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
  memory_fault::unblock_on_this_thread();
  ask_for_short_slices();
  // Sleeps end when they should, not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  IdleState idle(nic_.config().idle);
  while (!stop_.load(std::memory_order_relaxed)) {
    if (nic_.poll() != 0) {
      idle.worked();
    } else {
      idle.wait(nic_);
    }
  }
}

}  // namespace belfry::softnic
