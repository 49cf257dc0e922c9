#include "softnic/fabric/random.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>

namespace belfry::softnic {

std::uint64_t system_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof seed)) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    seed = mix(static_cast<std::uint64_t>(now)) ^ mix(static_cast<std::uint64_t>(getpid()));
  }
  return seed ? seed : 1;
}

}  // namespace belfry::softnic
