#pragma once
/// \file
/// What this process uses: processor time of its threads, memory.

#include <cstdint>

namespace belfry::bench {

/// Processor time that all threads but the calling one have used so far, ns. Threads that end meanwhile
/// are no longer counted. Throws std::runtime_error where /proc cannot be read.
std::uint64_t other_threads_cpu_ns();

/// Resident memory, bytes. Throws std::runtime_error where /proc cannot be read.
std::uint64_t resident_bytes();

}  // namespace belfry::bench
