#include "cli/command_line.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/commands.hpp"

namespace belfry::cli {

void add_command_words(CLI::App& command, std::vector<std::string>& words) {
  command.add_option("command", words, "-- COMMAND [ARGS]: the program to run")->type_name("");
  command.allow_extras();
}

void cannot_run(const std::string& name, const std::string& command, int error) {
  if (error == ENOENT) {
    std::fprintf(stderr, "belfry %s: %s: command not found; give its path, or add its folder to PATH\n",
                 name.c_str(), command.c_str());
    throw CLI::RuntimeError(127);
  }
  std::fprintf(stderr, "belfry %s: cannot execute %s: %s\n", name.c_str(), command.c_str(),
               std::strerror(error));
  throw CLI::RuntimeError(126);
}

std::vector<std::string> command_words(const std::string& name, std::vector<std::string> words,
                                       const std::vector<std::string>& extras) {
  for (const std::string& extra : extras) {
    if (extra == "--") continue;
    throw CLI::ValidationError(name, extra + " is no option of belfry " + name +
                                         "; if it belongs to the command, "
                                         "put -- before the command");
  }
  const Invocation& typed = invocation();
  for (int i = 1; i < typed.argc; ++i) {
    if (std::strcmp(typed.argv[i], "--") != 0) continue;
    words.assign(typed.argv + i + 1, typed.argv + typed.argc);
    break;
  }
  if (words.empty()) {
    throw CLI::ValidationError(name, "give a command: belfry " + name + " [options] -- COMMAND [ARGS]");
  }
  return words;
}

}  // namespace belfry::cli
