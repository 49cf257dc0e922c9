#include "support.hpp"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "softnic/preload/location.hpp"

namespace belfry::softnic::test {
namespace {

int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::string read_all(int fd) {
  std::string text;
  char buffer[256];
  for (ssize_t got = 0; (got = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

unsigned open_uverbs_memories() {
  unsigned count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(directory)) {
    char target[PATH_MAX] = {};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(path.c_str(), target, sizeof target - 1) < 0) continue;
    if (std::string(target).find("belfry-uverbs") != std::string::npos) ++count;
  }
  closedir(directory);
  return count;
}

int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child < 0 ? -1 : status_of(child);
}

Outcome run(const std::vector<std::string>& command, const std::vector<std::string>& settings) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    for (const std::string& setting : settings) putenv(strdup(setting.c_str()));
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  Outcome outcome;
  outcome.output = read_all(ends[0]);
  close(ends[0]);
  outcome.status = status_of(child);
  return outcome;
}

Outcome run_preloaded(const std::vector<std::string>& command, const std::vector<std::string>& settings) {
  std::string list(preload::kSanitizerRuntime);
  if (!list.empty()) list += ':';
  list.append(preload::kBuildDirectory).append("/").append(preload::kLibraryFile);
  std::vector<std::string> all = settings;
  all.push_back("LD_PRELOAD=" + list);
  all.push_back("ASAN_OPTIONS=detect_leaks=0");
  return run(command, all);
}

}  // namespace belfry::softnic::test
