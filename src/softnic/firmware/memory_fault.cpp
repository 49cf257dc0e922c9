#include "softnic/firmware/memory_fault.hpp"

#include <signal.h>

#include <atomic>
#include <mutex>

namespace belfry::softnic::memory_fault {

thread_local sigjmp_buf* landing = nullptr;

namespace {

/// Guards the program's dispositions. A handler takes it too, so nothing in between may fault.
std::atomic_flag busy = ATOMIC_FLAG_INIT;
struct sigaction previous_segv, previous_bus;
std::atomic<bool> installed{false};

class Guard {
 public:
  Guard() {
    while (busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Guard() { busy.clear(std::memory_order_release); }
};

struct sigaction& previous_of(int signal) {
  return signal == SIGSEGV ? previous_segv : previous_bus;
}

/// Runs the program's handler as the kernel would have.
void pass_on(int signal, siginfo_t* info, void* context) {
  struct sigaction previous;
  {
    const Guard guard;
    previous = previous_of(signal);
    if (previous.sa_flags & SA_RESETHAND) previous_of(signal).sa_handler = SIG_DFL;
  }
  if (!(previous.sa_flags & SA_SIGINFO) &&
      (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)) {
    // The instruction runs again, and this time the fault takes its usual course.
    installed = false;
    previous.sa_handler = SIG_DFL;
    sigaction(signal, &previous, nullptr);
    return;
  }
  sigset_t before;
  if (!(previous.sa_flags & SA_NODEFER)) sigaddset(&previous.sa_mask, signal);
  pthread_sigmask(SIG_BLOCK, &previous.sa_mask, &before);
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (sigjmp_buf* to = landing) {
    landing = nullptr;
    siglongjmp(*to, 1);
  }
  pass_on(signal, info, context);
}

}  // namespace

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = &on_fault;
    // SA_NODEFER: the handler leaves by siglongjmp, and the signal must not stay blocked. SA_ONSTACK: a
    // thread that overflows its stack is somebody else's fault, and reaches them.
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
    installed = true;
  });
}

bool take_disposition(int signal, const struct sigaction* action, struct sigaction* old) {
  if ((signal != SIGSEGV && signal != SIGBUS) || !installed) return false;
  const Guard guard;
  const struct sigaction former = previous_of(signal);
  if (action) previous_of(signal) = *action;
  if (old) *old = former;
  return true;
}

void raise() {
  sigjmp_buf* const to = landing;
  landing = nullptr;
  siglongjmp(*to, 1);
}

void unblock_on_this_thread() {
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

}  // namespace belfry::softnic::memory_fault
