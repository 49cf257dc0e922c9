#include "03_dispatch_combine/routing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

namespace belfry::examples {
namespace {

/// Engines only: what the distributions of <random> draw differs from library to library.
std::mt19937_64 engine_of(std::uint64_t seed, std::uint64_t round, std::uint64_t pe, std::uint64_t use) {
  std::seed_seq sequence{seed, seed >> 32, round, pe, use};
  return std::mt19937_64(sequence);
}
double unit_draw(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

/// How popular each expert is. Which of them is popular is the seed's choice, the same for all PEs.
std::vector<double> popularity(const Shape& shape, std::uint64_t seed, double imbalance) {
  std::vector<double> shares(shape.experts());
  for (std::size_t r = 0; r < shares.size(); ++r)
    shares[r] = std::pow(static_cast<double>(r + 1), -imbalance);
  std::mt19937_64 engine = engine_of(seed, 0, 0, 0);
  for (std::size_t i = shares.size(); i > 1; --i) std::swap(shares[i - 1], shares[engine() % i]);
  return shares;
}

/// Draws one expert by its share, and takes it out of the next draw.
std::uint32_t draw_expert(std::vector<double>& shares, std::mt19937_64& engine) {
  double left = unit_draw(engine) * std::accumulate(shares.begin(), shares.end(), 0.0);
  std::size_t chosen = shares.size();
  for (std::size_t e = 0; e < shares.size(); ++e) {
    if (shares[e] == 0) continue;
    chosen = e;
    left -= shares[e];
    if (left < 0) break;
  }
  shares[chosen] = 0;
  return static_cast<std::uint32_t>(chosen);
}

}  // namespace

Routing make_routing(const Shape& shape, std::uint64_t seed, double imbalance, std::uint64_t round,
                     std::uint32_t pe) {
  const std::vector<double> shares = popularity(shape, seed, imbalance);
  std::mt19937_64 engine = engine_of(seed, round, pe, 1);
  Routing routing;
  for (std::uint32_t token = 0; token < shape.tokens; ++token) {
    std::vector<double> left = shares;
    std::uint64_t sixty_fourths = 64;
    for (std::uint32_t choice = 0; choice < shape.choices; ++choice) {
      routing.experts.push_back(draw_expert(left, engine));
      const bool last = choice + 1 == shape.choices;
      const std::uint64_t share = last ? sixty_fourths : engine() % (sixty_fourths + 1);
      sixty_fourths -= share;
      routing.weights.push_back(static_cast<float>(share) / 64);
    }
  }
  return routing;
}

std::vector<float> make_tokens(const Shape& shape, std::uint64_t seed, std::uint64_t round,
                               std::uint32_t pe) {
  std::mt19937_64 engine = engine_of(seed, round, pe, 2);
  std::vector<float> tokens(std::size_t{shape.tokens} * shape.floats);
  for (float& x : tokens) x = static_cast<float>(engine() & 0xff);
  return tokens;
}

std::vector<float> reference_output(const Shape& shape, const Routing& routing,
                                    const std::vector<float>& tokens) {
  std::vector<float> output(tokens.size());
  for (std::size_t i = 0; i < output.size(); ++i) {
    const std::size_t token = i / shape.floats;
    for (std::size_t c = token * shape.choices; c < (token + 1) * shape.choices; ++c)
      output[i] += routing.weights[c] * apply_expert(routing.experts[c], tokens[i]);
  }
  return output;
}

std::vector<std::uint32_t> count_tokens(const Shape& shape, const Routing& routing) {
  std::vector<std::uint32_t> counts(shape.experts());
  for (const std::uint32_t expert : routing.experts) ++counts[expert];
  return counts;
}

std::uint64_t checksum(const std::vector<float>& values) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const float value : values) {
    hash ^= std::bit_cast<std::uint32_t>(value);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace belfry::examples
