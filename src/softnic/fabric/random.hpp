#pragma once
/// \file
/// Numbers that are the same on every platform for one seed.

#include <cstdint>

namespace belfry::softnic {

/// A bijection of 64-bit numbers that spreads neighbours (the finaliser of the SplitMix64 generator,
/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A number from the system that another process does not get: getrandom(2), or where a sandbox
/// refuses that, the clock and the process id. Never 0.
std::uint64_t system_seed();

/// `seed` itself, or a number from the system where it is 0.
inline std::uint64_t seed_or_system(std::uint64_t seed) { return seed ? seed : system_seed(); }

}  // namespace belfry::softnic
