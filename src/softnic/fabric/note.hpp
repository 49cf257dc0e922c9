#pragma once
/// \file
/// Lines for the person who runs the program, on standard error.

#include <cstdio>
#include <string>

namespace belfry::softnic {

inline void note(const std::string& line) { std::fprintf(stderr, "belfry softnic: %s\n", line.c_str()); }

/// Says something at most once in its life, so that a peer cannot fill the terminal.
class NoteOnce {
 public:
  void operator()(const std::string& line) {
    if (said_) return;
    said_ = true;
    note(line);
  }

 private:
  bool said_ = false;
};

}  // namespace belfry::softnic
