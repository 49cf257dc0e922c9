#include "softnic/fabric/owned_fd.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace belfry::softnic {
namespace {

/// Descriptors from this number on are not closed in a fork's child.
constexpr int kGuardedFds = 1 << 16;

/// One bit a descriptor. Plain atomics, because the child of a fork may take no lock.
std::array<std::atomic<std::uint64_t>, kGuardedFds / 64> guarded;

/// Counts the forks between the first process and this one.
std::atomic<unsigned> generation{0};

/// Runs in the child, where another thread's lock can be held for ever: system calls only, and not
/// through close(), which the preload library stands in front of.
void close_in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t word = 0; word < guarded.size(); ++word) {
    std::uint64_t bits = guarded[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      const auto fd = static_cast<long>(word * 64) + std::countr_zero(bits);
      syscall(SYS_close, fd);
    }
  }
}

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, close_in_child);
  (void)registered;  // ENOMEM: a child keeps the descriptors until it execs or ends, no more than that
}

}  // namespace

OwnedFd::OwnedFd(int fd) : fd_(fd), generation_(generation.load(std::memory_order_relaxed)) {
  if (fd < 0) return;
  watch_forks();
  if (fd < kGuardedFds) {
    guarded[static_cast<std::size_t>(fd) / 64].fetch_or(std::uint64_t{1} << (fd % 64),
                                                        std::memory_order_relaxed);
  }
}

void OwnedFd::reset() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0 || generation_ != generation.load(std::memory_order_relaxed)) return;
  if (fd < kGuardedFds) {
    guarded[static_cast<std::size_t>(fd) / 64].fetch_and(~(std::uint64_t{1} << (fd % 64)),
                                                         std::memory_order_relaxed);
  }
  ::close(fd);
}

}  // namespace belfry::softnic
