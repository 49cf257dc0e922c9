// Runs before main: tests that run at the same time must not share a fabric.

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

const bool kOwnFabric = [] {
  const std::string name = "host-tests-" + std::to_string(getpid());
  return setenv("BELFRY_SOFTNIC_FABRIC", name.c_str(), 0) == 0;
}();

}  // namespace
