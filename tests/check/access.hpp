#pragma once
/// \file
/// Where the checked sources enter the checker: port_memory.hpp calls these for every access.
/// Outside of a running agent (set-up, tests) they access the real memory.

#include <cstdint>

#include "belfry/port/scope.hpp"

namespace belfry::check {

enum class Modify { add, exchange, compare_exchange, max };

/// \param bytes 1, 2, 4 or 8
/// \param waits a turn of a waiting loop
std::uint64_t do_load(const void* at, unsigned bytes, port::Scope scope, bool acquire, bool waits);
/// \param strong false: a weak store, which synchronises with nothing
void do_store(void* at, unsigned bytes, std::uint64_t value, port::Scope scope, bool release, bool strong);
/// 16 B, whole.
void do_load_16(const void* at, std::uint64_t (&value)[2]);
void do_store_16(void* at, std::uint64_t low, std::uint64_t high);
/// A doorbell store: on a CPU what precedes is ordered before it.
void do_store_doorbell(void* at, std::uint64_t value);
std::uint64_t do_modify(void* at, unsigned bytes, Modify what, port::Scope scope, port::Order order,
                        std::uint64_t operand, std::uint64_t expected);
void do_fence(port::Scope scope);
void do_fence_sequential(port::Scope scope);
std::uint64_t now_ns();

}  // namespace belfry::check
