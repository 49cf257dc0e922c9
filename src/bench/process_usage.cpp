#include "bench/process_usage.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace belfry::bench {
namespace {

/// The clock of a thread's processor time, as the kernel encodes it (CPUCLOCK_PERTHREAD_MASK |
/// CPUCLOCK_SCHED in include/linux/posix-timers_types.h). /proc/PID/task/TID/stat counts in ticks of
/// 10 ms, which is too coarse for a thread that hardly runs.
clockid_t cpu_clock_of(pid_t thread) {
  return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6u);
}

}  // namespace

std::uint64_t other_threads_cpu_ns() {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  std::error_code error;
  std::uint64_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string name = entry.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread == self) continue;
    timespec used{};
    // A thread may have ended since the folder was read.
    if (clock_gettime(cpu_clock_of(thread), &used) != 0) continue;
    total += static_cast<std::uint64_t>(used.tv_sec) * 1000000000u + static_cast<std::uint64_t>(used.tv_nsec);
  }
  if (error) throw std::runtime_error("cannot read /proc/self/task: " + error.message());
  return total;
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) throw std::runtime_error("cannot read /proc/self/statm");
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace belfry::bench
