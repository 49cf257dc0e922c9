#pragma once
/// \file
/// Hashes of states. Two states of an exploration are held for one if 64 bits agree: with a million states
/// the chance that any two of them meet by accident is below 1e-7.

#include <cstdint>

namespace belfry::check {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t x = hash ^ (value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace belfry::check
