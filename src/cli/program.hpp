#pragma once
/// \file
/// The program that a command names, and whether a preload library reaches it.

#include <string>

namespace belfry::cli {

struct Program {
  std::string path;
  int error = 0;  ///< ENOENT: not found; EACCES: found, but not executable
};

/// As execvp() finds it: a name with a slash is a path, any other is looked for along PATH.
Program find_program(const std::string& name);

/// Why the dynamic linker would not preload a library into it, to be read behind its name ("is
/// statically linked"); empty where it would, and where the file cannot be read.
std::string unreachable_reason(const std::string& path);

}  // namespace belfry::cli
