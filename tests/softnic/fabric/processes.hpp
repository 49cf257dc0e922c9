#pragma once
/// \file
/// Child processes that run a function, and never outlive the test.

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace belfry::softnic::testing {

class Child {
 public:
  /// Forks; the child runs `body`, whose value is its exit code. No thread may run yet.
  explicit Child(const std::function<int()>& body) {
    std::fflush(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(99);
    int code = 98;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(code);
  }
  ~Child() { kill_now(); }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&&) = delete;

  void kill_now() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  /// \return the exit code; 128 + signal; or -1 if it has not ended in time
  int join(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

/// Carries plain values from one process to another.
class Pipe {
 public:
  Pipe() {
    if (pipe(ends_) != 0) std::abort();
  }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  template <class T>
  void put(const T& value) {
    if (write(ends_[1], &value, sizeof value) != static_cast<ssize_t>(sizeof value)) std::abort();
  }
  template <class T>
  T get() {
    T value{};
    while (read(ends_[0], &value, sizeof value) != static_cast<ssize_t>(sizeof value)) {
      if (errno != EINTR) std::abort();
    }
    return value;
  }

 private:
  int ends_[2];
};

}  // namespace belfry::softnic::testing
