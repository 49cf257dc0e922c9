#pragma once
/// \file
/// One end of the experiment `op`: rank 0 measures, rank 1 serves. Both make the same passes in the same
/// order; docs of each pair of functions say who waits for whom.

#include <cstdint>
#include <string>
#include <vector>

#include "belfry/host/endpoint.hpp"
#include "bench/clock.hpp"
#include "bench/target.hpp"
#include "bench/wait.hpp"

namespace belfry::bench {

enum class Payload : std::uint8_t { inlined, pointer };

/// Samples of one pass, us.
struct PutSamples {
  std::vector<double> issue;           ///< in ibv_post_send
  std::vector<double> put_completion;  ///< from before ibv_post_send to having polled the CQE
  bool verified = false;
};
struct RoundTripSamples {
  std::vector<double> round_trip;  ///< from before ibv_post_send to having seen the peer's reply in memory
  bool verified = false;
};

class OpEnd {
 public:
  /// Opens the device, sets up queue and memory and connects to the other rank. Throws host::Error.
  /// \param nic as --nic says it
  OpEnd(const std::string& nic, host::Bootstrap& group, std::uint64_t seed);

  /// Rank 0: `count` 8 B writes, one outstanding, after a few that are not recorded. Then the target is
  /// looked at. Rank 1 serves with the same count.
  PutSamples measure_puts(Payload payload, std::uint64_t count, const PollPolicy& policy, const Clock& clock);
  void serve_puts(std::uint64_t count);

  /// Rank 0: `count` round trips, each one write there and one back, both 8 B to a flag that the receiver
  /// polls. Rank 1 serves with the same arguments.
  RoundTripSamples measure_round_trips(Payload payload, std::uint64_t count, const PollPolicy& policy,
                                       const Clock& clock);
  void serve_round_trips(Payload payload, std::uint64_t count, const PollPolicy& policy);

  const host::Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Wanted {
    std::uint64_t value;
    std::uint64_t before;
  };
  void prepare(ibv_send_wr& request, ibv_sge& segment, Payload payload, std::uint64_t value,
               std::uint64_t slot, std::uint64_t remote_offset);
  void post(ibv_send_wr& request);
  void wait_for_completion(const PollPolicy& policy);
  bool wait_for_flag(Wanted wanted, const PollPolicy& policy);
  void send_flag(Payload payload, std::uint64_t i);
  void reap_flag(std::uint64_t i, const PollPolicy& policy);

  host::Bootstrap& group_;
  host::Endpoint endpoint_;
  const host::Memory& memory_;
  host::VerbsQueue& queue_;
  host::WindowDescription peer_;
  std::uint64_t seed_;
};

}  // namespace belfry::bench
