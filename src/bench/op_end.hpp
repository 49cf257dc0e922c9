#pragma once
/// \file
/// One end of the experiment `op`: rank 0 measures, rank 1 serves. Both make the same passes in the same
/// order; docs of each pair of functions say who waits for whom.

#include <cstdint>
#include <string>

#include "belfry/host/endpoint.hpp"
#include "bench/op_path.hpp"

namespace belfry::bench {

class OpEnd {
 public:
  /// Opens the device, sets up queue and memory and connects to the other rank. Throws host::Error.
  /// \param nic as --nic says it
  OpEnd(const std::string& nic, host::Bootstrap& group, std::uint64_t seed);

  /// Rank 0: `count` 8 B writes by `path`. Then the target is looked at. Rank 1 serves with the same count.
  PutSamples measure_puts(OpPath& path, std::uint64_t count);
  void serve_puts(std::uint64_t count);

  /// Rank 0: `count` round trips by `path`. Rank 1 serves with the same arguments.
  RoundTripSamples measure_round_trips(OpPath& path, std::uint64_t count);
  void serve_round_trips(OpPath& path, std::uint64_t count);

  const host::Endpoint& endpoint() const { return endpoint_; }
  host::Bootstrap& group() const { return group_; }
  std::uint64_t seed() const { return seed_; }
  int peer() const { return 1 - group_.rank(); }

 private:
  void clear_flag();

  host::Bootstrap& group_;
  host::Endpoint endpoint_;
  const host::Memory& memory_;
  std::uint64_t seed_;
};

}  // namespace belfry::bench
