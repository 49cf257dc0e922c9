#pragma once
/// \file
/// Which token goes where. Every PE has a number of experts; each token goes to several of them, wherever
/// they are. Once all PEs know how many tokens each sends to each expert, each of them can work out every
/// address alone, so that no token carries one.

#include <cstdint>

#include "belfry/device/window.hpp"
#include "belfry/port/function.hpp"

namespace belfry::examples {

/// The windows, in the order in which main() lists them.
enum Window : std::uint32_t {
  kCounts,    ///< [PE][expert]: tokens that the PE sends to the expert; each PE writes its row everywhere
  kTokens,    ///< [token]: this PE's own
  kReceived,  ///< [expert of this PE][source PE]...: tokens to work on, without gaps
  kResults,   ///< the same for what the experts made of them
  kReturned,  ///< [expert][order]: results of this PE's tokens, sorted by expert
  kSignals,   ///< [phase][PE]
};

/// Three signals from each PE; each is set to the number of the round.
enum Phase : std::uint32_t { kCountsHere, kTokensHere, kResultsHere, kPhases };

struct Shape {
  std::uint32_t pes;
  std::uint32_t experts_a_pe;
  std::uint32_t tokens;   ///< of each PE
  std::uint32_t choices;  ///< experts that a token goes to (top-k), all different
  std::uint32_t floats;   ///< of a token

  BELFRY_FN std::uint32_t experts() const { return pes * experts_a_pe; }
  BELFRY_FN std::uint32_t pe_of(std::uint32_t expert) const { return expert / experts_a_pe; }
  BELFRY_FN std::uint64_t token_bytes() const { return std::uint64_t{floats} * sizeof(float); }
  /// Tokens sent by one PE, counting each once an expert.
  BELFRY_FN std::uint32_t sent() const { return tokens * choices; }
  /// Tokens that one PE gets at most: all of all PEs, each as often as it has experts for it.
  BELFRY_FN std::uint64_t most_received() const {
    return std::uint64_t{pes} * tokens * (choices < experts_a_pe ? choices : experts_a_pe);
  }
};

BELFRY_FN inline device::Place signal_place(const Shape& shape, Phase phase, std::uint32_t pe) {
  return {kSignals, (std::uint64_t{phase} * shape.pes + pe) * 8};
}

/// The matrix in kCounts.
struct Counts {
  const std::uint32_t* at;
  Shape shape;

  BELFRY_FN std::uint32_t operator()(std::uint32_t source, std::uint32_t expert) const {
    return at[source * shape.experts() + expert];
  }
  /// Tokens that `source` sends to the experts of a PE.
  BELFRY_FN std::uint32_t to_pe(std::uint32_t source, std::uint32_t pe) const {
    return order_of(source, (pe + 1) * shape.experts_a_pe) - order_of(source, pe * shape.experts_a_pe);
  }
  /// Where the source's tokens for an expert begin among all that it sends, sorted by expert. This is also
  /// where their results come back to in its kReturned.
  BELFRY_FN std::uint32_t order_of(std::uint32_t source, std::uint32_t expert) const {
    std::uint32_t sum = 0;
    for (std::uint32_t e = 0; e < expert; ++e) sum += (*this)(source, e);
    return sum;
  }
  /// Where the source's tokens for an expert begin in the kReceived of the expert's PE. `source` may be
  /// shape.pes: where the expert's tokens end.
  BELFRY_FN std::uint32_t slot_of(std::uint32_t source, std::uint32_t expert) const {
    std::uint32_t sum = 0;
    for (std::uint32_t e = shape.pe_of(expert) * shape.experts_a_pe; e <= expert; ++e)
      for (std::uint32_t s = 0; s < (e == expert ? source : shape.pes); ++s) sum += (*this)(s, e);
    return sum;
  }
};

/// What an expert makes of a token's element: whole numbers, so that sums are exact in any order.
BELFRY_FN inline float apply_expert(std::uint32_t expert, float x) {
  return x * static_cast<float>(expert % 7 + 1) + static_cast<float>(expert);
}

}  // namespace belfry::examples
