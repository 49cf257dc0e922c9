#include "bench/peer_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace belfry::bench {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::string text_of_status(int status) {
  if (WIFEXITED(status))
    return "the peer process ended with exit code " + std::to_string(WEXITSTATUS(status));
  return "the peer process was killed by signal " + std::to_string(WTERMSIG(status));
}

}  // namespace

std::vector<std::string> peer_arguments(const RunContext& run, const std::string& address) {
  const Options& options = run.options();
  std::vector<std::string> arguments = {"belfry",
                                        "bench",
                                        run.experiment().name,
                                        "--peer-of",
                                        address,
                                        "--processes",
                                        "2",
                                        "--nic",
                                        options.nic,
                                        "--passes",
                                        std::to_string(run.passes()),
                                        "--iterations",
                                        std::to_string(run.iterations()),
                                        "--arms",
                                        joined(run.arms()),
                                        "--seed",
                                        std::to_string(options.seed)};
  if (!options.fabric.empty()) arguments.insert(arguments.end(), {"--softnic-fabric", options.fabric});
  for (const ParameterInfo& info : run.experiment().parameters) {
    const Value value = run.parameter_value(info.name);
    const auto* name = std::get_if<std::string>(&value);
    arguments.insert(arguments.end(),
                     {"--" + info.name, name ? *name : std::to_string(run.parameter(info.name))});
  }
  return arguments;
}

PeerProcess::PeerProcess(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "cannot start the peer process");
  if (pid_ != 0) return;
  // In the child, between fork and exec: only what is safe there. The parent may have died meanwhile.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  execv("/proc/self/exe", argv.data());
  _exit(127);
}

PeerProcess::~PeerProcess() {
  if (reap(false)) return;
  kill(pid_, SIGKILL);
  reap(true);
}

bool PeerProcess::reap(bool block) {
  if (ended_) return true;
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = waitpid(pid_, &status, block ? 0 : WNOHANG);
  } while (reaped < 0 && errno == EINTR);
  if (reaped != pid_) return false;
  ended_ = true;
  status_ = status;
  return true;
}

std::string PeerProcess::ending() { return reap(false) ? text_of_status(status_) : std::string(); }

void PeerProcess::wait(std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!reap(false)) {
    if (std::chrono::steady_clock::now() >= end) {
      throw std::runtime_error("the peer process (pid " + std::to_string(pid_) + ") did not end within " +
                               std::to_string(limit.count()) + " s after the last pass");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!WIFEXITED(status_) || WEXITSTATUS(status_) != 0) throw std::runtime_error(text_of_status(status_));
}

}  // namespace belfry::bench
