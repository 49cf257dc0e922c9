#pragma once
#include <string>
#include <vector>

namespace belfry::cli {

struct Outcome {
  int exit_code = -1;  ///< 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

/// Runs a program, found as execvp() finds it, with an empty stdin.
/// \param words       its name and arguments
/// \param environment NAME=VALUE, on top of this process's
Outcome run_program(std::vector<std::string> words, const std::vector<std::string>& environment = {});

/// Runs the belfry that this build has made.
/// \param environment NAME=VALUE, on top of this process's
Outcome run_belfry(const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment = {});

}  // namespace belfry::cli
