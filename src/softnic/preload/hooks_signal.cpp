/// \file
/// sigaction() and signal(): a program that takes SIGSEGV for itself must not take it from the NIC's
/// thread, which survives memory that went away by it.

#include <dlfcn.h>
#include <signal.h>

#include "softnic/firmware/memory_fault.hpp"
#include "softnic/preload/hook.hpp"

using namespace belfry::softnic;

namespace {

using SigactionFunction = int (*)(int, const struct sigaction*, struct sigaction*);
using SignalFunction = sighandler_t (*)(int, sighandler_t);

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

BELFRY_HOOK(int, hook_sigaction, "sigaction", int signal, const struct sigaction* action,
            struct sigaction* old) {
  if (memory_fault::take_disposition(signal, action, old)) return 0;
  static const auto system = next<SigactionFunction>("sigaction");
  return system(signal, action, old);
}

BELFRY_HOOK(sighandler_t, hook_signal, "signal", int signal, sighandler_t handler) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  struct sigaction old {};
  if (handler != SIG_ERR && memory_fault::take_disposition(signal, &action, &old)) return old.sa_handler;
  static const auto system = next<SignalFunction>("signal");
  return system(signal, handler);
}
