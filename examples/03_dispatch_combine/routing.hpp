#pragma once
/// \file
/// Tokens and their experts, drawn from a seed, and what must come out: a model's gate, and the reference.

#include <cstdint>
#include <vector>

#include "03_dispatch_combine/layout.hpp"

namespace belfry::examples {

struct Routing {
  std::vector<std::uint32_t> experts;  ///< [token][choice], the choices of a token all different
  std::vector<float> weights;          ///< [token][choice]: multiples of 1/64 that sum to 1 for each token
};

/// The routing of one PE in one round. The same on every PE that asks, so that each can check all.
/// \param imbalance 0: experts are equally popular; n: the r-th most popular has a share of 1 / r^n
Routing make_routing(const Shape& shape, std::uint64_t seed, double imbalance, std::uint64_t round,
                     std::uint32_t pe);

/// The tokens of one PE in one round: whole numbers from 0 to 255.
std::vector<float> make_tokens(const Shape& shape, std::uint64_t seed, std::uint64_t round, std::uint32_t pe);

/// What combine must give, worked out without sending anything. Every value on the way is a multiple of 1/64
/// below 2^18, so floats are exact and the order of sums does not matter.
std::vector<float> reference_output(const Shape& shape, const Routing& routing,
                                    const std::vector<float>& tokens);

/// [expert]: how many tokens a PE sends to each.
std::vector<std::uint32_t> count_tokens(const Shape& shape, const Routing& routing);

/// FNV-1a over the 32-bit words of the values.
std::uint64_t checksum(const std::vector<float>& values);

}  // namespace belfry::examples
