#include "bench/cores.hpp"

#include <sched.h>

#include <thread>

namespace belfry::bench {

unsigned usable_cores() {
  cpu_set_t set;
  // More cores than cpu_set_t has bits: the call fails, and there is no want of cores.
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::thread::hardware_concurrency();
  return static_cast<unsigned>(CPU_COUNT(&set));
}

}  // namespace belfry::bench
