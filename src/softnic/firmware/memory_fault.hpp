#pragma once
/// \file
/// Memory that goes away under the NIC. A device's pages are pinned: an application may unmap a buffer that
/// is still registered, or leave main() with its queues open, and nothing happens. Here the same access is
/// a SIGSEGV on the NIC's thread, which must end in an error of the queue that made it, not of the process.

#include <setjmp.h>
#include <signal.h>  // sigsetjmp is POSIX: <csetjmp> need not have it

namespace belfry::softnic {

struct QueuePair;
class CompletionQueue;

/// Whose memory the NIC is touching, for the blame when it is gone.
struct InHand {
  QueuePair* qp = nullptr;
  QueuePair* requester = nullptr;  ///< on the direct path: whose request it is
  CompletionQueue* cq = nullptr;
  bool cq_died = false;  ///< since its users were last looked for
};

namespace memory_fault {

/// Installs the handlers of SIGSEGV and SIGBUS, once a process; faults of other threads, and of this
/// thread elsewhere, go to whoever had the signals before.
void install();

/// What sigaction() does for SIGSEGV and SIGBUS once our handlers stand: the program's disposition is kept
/// behind ours, for the faults that are not the NIC's, and the kernel is not told.
/// \param action may be null; \param[out] old may be null
/// \return false where the signal is not one of these or no handler of ours stands: ask the system
bool take_disposition(int signal, const struct sigaction* action, struct sigaction* old);

/// Lets the calling thread receive the two signals, which a thread that blocks every signal must.
void unblock_on_this_thread();

/// Ends the survive_faults() around it as a fault would, for memory that is reached otherwise than by loads
/// and stores. \pre there is one
[[noreturn]] void raise();

/// Where the handler returns to; null: the fault is not ours.
extern thread_local sigjmp_buf* landing;

}  // namespace memory_fault

/// Runs `work`; a fault on memory ends it. What `work` had done until then stays done, and no destructor of
/// its frames runs: it holds no locks and owns nothing while it touches foreign memory. May be nested.
/// \return false if it faulted
template <class Work>
[[nodiscard]] bool survive_faults(Work&& work) {
  sigjmp_buf here;
  sigjmp_buf* const outer = memory_fault::landing;
  if (sigsetjmp(here, 0) != 0) {
    memory_fault::landing = outer;
    return false;
  }
  memory_fault::landing = &here;
  work();
  memory_fault::landing = outer;
  return true;
}

}  // namespace belfry::softnic
