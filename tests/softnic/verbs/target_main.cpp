/// \file
/// A target as a process of its own: commands on standard input's socket. Argument: bytes of memory.

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "softnic/verbs/target.hpp"

int main(int argc, char** argv) {
  try {
    belfry::softnic::test::Options options;
    if (argc > 1) options.bytes = std::strtoull(argv[1], nullptr, 10);
    belfry::softnic::test::serve(0, options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "verbs target: %s\n", e.what());
    return 1;
  }
  return 0;
}
