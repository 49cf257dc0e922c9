#include "cli/run_program.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace belfry::cli {
namespace {

/// A file without a name: it cannot fill up and stop the program, as a pipe can.
int temporary_file() {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) throw std::runtime_error("no temporary file");
  const int fd = dup(fileno(file));
  std::fclose(file);
  return fd;
}

std::string contents(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t got = 0; (got = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(fd);
  return text;
}

}  // namespace

Outcome run_program(std::vector<std::string> words, const std::vector<std::string>& environment) {
  const int out = temporary_file();
  const int err = temporary_file();
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    for (const std::string& pair : environment) {
      const std::size_t at = pair.find('=');
      setenv(pair.substr(0, at).c_str(), pair.substr(at + 1).c_str(), 1);
    }
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = contents(out);
  outcome.err = contents(err);
  return outcome;
}

Outcome run_belfry(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::vector<std::string> words = {BELFRY_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(std::move(words), environment);
}

}  // namespace belfry::cli
