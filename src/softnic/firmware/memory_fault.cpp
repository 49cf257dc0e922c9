#include "softnic/firmware/memory_fault.hpp"

#include <signal.h>

#include <mutex>

namespace belfry::softnic::memory_fault {

thread_local sigjmp_buf* landing = nullptr;

namespace {

struct sigaction previous_segv, previous_bus;

void pass_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    // The instruction runs again, and this time the fault takes its usual course.
    sigaction(signal, &previous, nullptr);
  } else {
    previous.sa_handler(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (sigjmp_buf* to = landing) {
    landing = nullptr;
    siglongjmp(*to, 1);
  }
  pass_on(signal == SIGSEGV ? previous_segv : previous_bus, signal, info, context);
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
  });
}

void unblock_on_this_thread() {
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

}  // namespace belfry::softnic::memory_fault
