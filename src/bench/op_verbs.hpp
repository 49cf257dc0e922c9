#pragma once
/// \file
/// `op` by libmlx5's own ibv_post_send and ibv_poll_cq.

#include "bench/clock.hpp"
#include "bench/op_end.hpp"
#include "bench/wait.hpp"

namespace belfry::bench {

enum class VerbsPayload : std::uint8_t { inlined, pointer };

class VerbsPath final : public OpPath {
 public:
  /// \param puts, round_trips how this thread polls in each of the two
  VerbsPath(const OpEnd& end, const Clock& clock, VerbsPayload payload, PollPolicy puts,
            PollPolicy round_trips);

  void puts(std::uint64_t count, PutSamples& samples) override;
  void round_trips(std::uint64_t count, RoundTripSamples& samples) override;
  void echo(std::uint64_t count) override;

 private:
  struct Wanted {
    std::uint64_t value;
    std::uint64_t before;
  };
  void prepare(ibv_send_wr& request, ibv_sge& segment, std::uint64_t i, std::uint64_t remote_offset);
  void post(ibv_send_wr& request);
  void wait_for_completion(const PollPolicy& policy);
  bool wait_for_flag(Wanted wanted);
  void send_flag(std::uint64_t i);
  void reap_flag(std::uint64_t i);

  const Clock& clock_;
  const host::Memory& memory_;
  host::VerbsQueue& queue_;
  host::WindowDescription peer_;
  std::uint64_t seed_;
  VerbsPayload payload_;
  PollPolicy puts_;
  PollPolicy round_trips_;
};

}  // namespace belfry::bench
