#include "softnic/preload/process.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include "softnic/config.hpp"
#include "softnic/firmware/engine.hpp"
#include "softnic/preload/real.hpp"
#include "softnic/preload/sysfs_tree.hpp"

namespace belfry::softnic::preload {
namespace {

/// Everything here is made on demand and never destroyed. At exit other libraries' destructors and
/// other threads may still use verbs, and the engine runs until the last of them is done; the kernel
/// takes back memory and descriptors, and peers notice the death as they notice any other.
struct Process {
  std::mutex mutex;  ///< for the making; held across fork(), so that a child finds nothing half made
  std::atomic<bool> looked_at_settings{false};
  std::atomic<const Tree*> tree{nullptr};
  const Config* config = nullptr;
  Nic* nic = nullptr;
  Engine* engine = nullptr;
  std::atomic<std::uint32_t> generation{0};
  std::atomic<pid_t> owner{0};
};
constinit Process process{};

void say(const std::string& message) {
  const std::string line = "belfry softnic: " + message + "\n";
  // A lost message changes nothing that we could do better.
  [[maybe_unused]] const ssize_t written = real().write(STDERR_FILENO, line.data(), line.size());
}

bool switched_off() {
  const char* value = std::getenv("BELFRY_SOFTNIC");
  return value != nullptr && std::strcmp(value, "off") == 0;
}

/// Called with the mutex held.
void read_settings() {
  if (switched_off()) return;
  try {
    process.config = new Config(Config::from_environment());
    process.tree.store(build_tree(*process.config).release(), std::memory_order_release);
  } catch (const std::exception& error) {
    say(std::string("no devices: ") + error.what());
  }
}

/// The application's signals are for the application's threads: the engine's thread takes none.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// Called with the mutex held. \return 0 or an errno
int start_nic() {
  if (process.nic != nullptr) return 0;
  try {
    const SignalsBlocked blocked;
    auto nic = std::make_unique<Nic>(*process.config);
    process.engine = new Engine(*nic);
    process.nic = nic.release();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::exception& error) {
    say(std::string("the NIC cannot start: ") + error.what());
    return ENODEV;
  }
}

void before_fork() { process.mutex.lock(); }
void after_fork_in_parent() { process.mutex.unlock(); }

/// The parent's engine thread does not exist here, and its queues are the parent's: what the parent has
/// open is dead in this process, and the first open makes a NIC of our own. The old objects are left
/// alone, since another thread may have been in the middle of one.
void after_fork_in_child() {
  process.nic = nullptr;
  process.engine = nullptr;
  process.generation.fetch_add(1, std::memory_order_relaxed);
  process.owner.store(getpid(), std::memory_order_relaxed);
  process.mutex.unlock();
}

__attribute__((constructor(102))) void watch_forks() {
  process.owner.store(getpid(), std::memory_order_relaxed);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

const Tree* process_tree() {
  if (process.looked_at_settings.load(std::memory_order_acquire)) {
    return process.tree.load(std::memory_order_acquire);
  }
  const int saved = errno;
  {
    const std::lock_guard lock(process.mutex);
    if (!process.looked_at_settings.load(std::memory_order_relaxed)) {
      read_settings();
      process.looked_at_settings.store(true, std::memory_order_release);
    }
  }
  errno = saved;
  return process.tree.load(std::memory_order_acquire);
}

Result<std::shared_ptr<UverbsFile>> open_device(unsigned index) {
  if (process_tree() == nullptr || !owns_its_memory()) return Errno{ENODEV};
  const std::lock_guard lock(process.mutex);
  const int error = start_nic();
  if (error != 0) return Errno{error};
  return UverbsFile::open(*process.nic, index);
}

Nic* process_nic() {
  const std::lock_guard lock(process.mutex);
  return process.nic;
}

std::uint32_t process_generation() { return process.generation.load(std::memory_order_relaxed); }

bool owns_its_memory() {
  const pid_t owner = process.owner.load(std::memory_order_relaxed);
  return owner == 0 || owner == getpid();
}

}  // namespace belfry::softnic::preload
