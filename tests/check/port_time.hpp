#pragma once
/// \file
/// port/time.hpp under the checker: the clock stands still, and jumps past every deadline once nobody can go
/// on (where a scenario lets deadlines pass).

#include <cstdint>

#include "check/access.hpp"

namespace belfry::port::host_time {

inline std::uint64_t now_ns() { return check::now_ns(); }

}  // namespace belfry::port::host_time
