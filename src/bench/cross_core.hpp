#pragma once
/// \file
/// How long a cache line takes between two cores of this machine and back: the least that anything can
/// cost which hands a request to a thread on another core and waits for its answer, the software NIC
/// included.

#include <cstdint>

namespace belfry::bench {

/// Bounces a line between this thread and another one.
/// \param rounds at least 1
/// \return ns a round trip; with a single usable core it measures the scheduler
double cross_core_round_trip_ns(std::uint64_t rounds);

}  // namespace belfry::bench
