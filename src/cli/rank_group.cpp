#include "cli/rank_group.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>

#include "cli/line_pipe.hpp"

namespace belfry::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
/// The longest that a killed process may take to vanish.
constexpr std::chrono::seconds kKillLimit{5};
constexpr int kPassedOn[] = {SIGUSR1, SIGUSR2};

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

bool ends_group(int signal) {
  return std::find(std::begin(kEnding), std::end(kEnding), signal) != std::end(kEnding);
}

/// The signals of this process, as a descriptor to poll; given back as they were at the end.
class SignalQueue {
 public:
  SignalQueue() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (const int signal : kEnding) sigaddset(&set, signal);
    for (const int signal : kPassedOn) sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, &before_);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) throw_errno("cannot watch signals");
  }
  ~SignalQueue() {
    close(fd_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int fd() const { return fd_; }
  const sigset_t& before() const { return before_; }
  /// 0: none is waiting.
  int next() const {
    signalfd_siginfo info;
    return read(fd_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_;
  int fd_;
};

struct Rank {
  pid_t pid = -1;
  bool running = false;
  std::vector<LinePipe> pipes;  ///< stdout and stderr, or none
};

/// Processes that have this one for a parent, those that lost theirs included.
std::vector<pid_t> children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", getpid()));
  std::vector<pid_t> pids;
  for (pid_t pid; file >> pid;) pids.push_back(pid);
  return pids;
}

class RankGroup {
 public:
  explicit RankGroup(const RankGroupOptions& options) : options_(options) {}
  /// Whatever happens, nobody stays behind.
  ~RankGroup() { kill_all(); }
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int run();

 private:
  void start(int rank);
  [[noreturn]] void become(int rank, pid_t parent);
  void watch();
  void take_signals();
  void reap();
  void note_end(std::size_t rank, int status);
  void end_all(int signal);
  void send(int signal) const;
  void kill_all();
  bool is_running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
  }

  const RankGroupOptions& options_;
  SignalQueue signals_;
  std::vector<Rank> ranks_;
  std::optional<int> exit_code_;
  std::optional<SteadyClock::time_point> kill_at_;
};

/// In the child, between fork and exec.
void RankGroup::become(int rank, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  const auto& pipes = ranks_[static_cast<std::size_t>(rank)].pipes;
  if (!pipes.empty()) {
    dup2(pipes[0].write_end(), STDOUT_FILENO);
    dup2(pipes[1].write_end(), STDERR_FILENO);
  }
  for (const auto& [name, value] : options_.environment(rank)) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& argument : options_.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &signals_.before(), nullptr);
  execv(options_.program.c_str(), argv.data());
  std::fprintf(stderr, "belfry launch: cannot execute %s: %s\n", options_.program.c_str(), strerror(errno));
  _exit(126);
}

void RankGroup::start(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  if (options_.prefix) {
    const std::size_t width = std::to_string(options_.ranks - 1).size();
    const std::string prefix = fmt::format("[{:>{}}] ", number, width);
    rank.pipes.emplace_back(prefix, STDOUT_FILENO);
    rank.pipes.emplace_back(prefix, STDERR_FILENO);
  }
  std::fflush(nullptr);
  const pid_t parent = getpid();
  rank.pid = fork();
  if (rank.pid < 0) throw_errno("cannot start a rank");
  if (rank.pid == 0) become(number, parent);
  setpgid(rank.pid, rank.pid);  // both do it, so that it is done before either goes on
  rank.running = true;
  for (LinePipe& pipe : rank.pipes) pipe.close_write_end();
}

void RankGroup::send(int signal) const {
  for (const Rank& rank : ranks_)
    if (rank.running) kill(-rank.pid, signal);
}

void RankGroup::end_all(int signal) {
  send(signal);
  if (!kill_at_) kill_at_ = SteadyClock::now() + options_.grace;
}

void RankGroup::note_end(std::size_t number, int status) {
  ranks_[number].running = false;
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (good || exit_code_) return;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const std::string how = WIFEXITED(status) ? fmt::format("ended with exit code {}", WEXITSTATUS(status))
                                            : fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                                                          strsignal(WTERMSIG(status)));
  std::fprintf(stderr, "belfry launch: rank %zu %s%s\n", number, how.c_str(),
               is_running() ? "; ending the others" : "");
  end_all(SIGTERM);
}

void RankGroup::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (ranks_[i].running && ranks_[i].pid == pid) note_end(i, status);
  }
}

void RankGroup::take_signals() {
  while (const int signal = signals_.next()) {
    if (signal == SIGCHLD) {
      reap();
    } else if (ends_group(signal)) {
      if (!exit_code_) exit_code_ = 128 + signal;
      end_all(signal);
    } else {
      send(signal);
    }
  }
}

void RankGroup::watch() {
  while (is_running()) {
    std::vector<pollfd> waits = {{signals_.fd(), POLLIN, 0}};
    for (const Rank& rank : ranks_)
      for (const LinePipe& pipe : rank.pipes)
        if (pipe.read_end() >= 0) waits.push_back({pipe.read_end(), POLLIN, 0});
    int timeout_ms = -1;
    if (kill_at_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - SteadyClock::now());
      timeout_ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }
    if (poll(waits.data(), waits.size(), timeout_ms) < 0 && errno != EINTR)
      throw_errno("cannot wait for the ranks");
    for (Rank& rank : ranks_)
      for (LinePipe& pipe : rank.pipes) pipe.drain();
    take_signals();
    if (kill_at_ && SteadyClock::now() >= *kill_at_) {
      send(SIGKILL);
      kill_at_ = SteadyClock::now() + kKillLimit;
    }
  }
}

/// Ranks, what is left of their process groups, and what has left those: as a subreaper this process inherits
/// whoever loses its parent.
void RankGroup::kill_all() {
  for (const Rank& rank : ranks_)
    if (rank.pid > 0) kill(-rank.pid, SIGKILL);
  const auto limit = SteadyClock::now() + kKillLimit;
  for (std::vector<pid_t> left = children(); !left.empty() && SteadyClock::now() < limit; left = children()) {
    for (const pid_t pid : left) kill(pid, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int RankGroup::run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  ranks_.resize(static_cast<std::size_t>(options_.ranks));
  for (int rank = 0; rank < options_.ranks; ++rank) start(rank);
  watch();
  kill_all();
  for (Rank& rank : ranks_) {
    for (LinePipe& pipe : rank.pipes) {
      pipe.drain();
      pipe.finish();
    }
  }
  return exit_code_.value_or(0);
}

}  // namespace

int run_rank_group(const RankGroupOptions& options) { return RankGroup(options).run(); }

}  // namespace belfry::cli
