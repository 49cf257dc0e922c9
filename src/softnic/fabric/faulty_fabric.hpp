#pragma once
/// \file
/// A fabric that loses, repeats and reorders what goes through another one, the same way for the same
/// seed: what happens to the n-th frame that is sent depends on the seed and n alone.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "softnic/config.hpp"
#include "softnic/fabric/fabric.hpp"
#include "softnic/fabric/frame.hpp"

namespace belfry::softnic {

struct FaultCounters {
  std::uint64_t frames = 0;  ///< that send() has taken
  std::uint64_t dropped = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;  ///< held back until later frames had gone
};

class FaultyFabric final : public Fabric {
 public:
  /// A frame that is held back goes after at most this many later frames or polls.
  static constexpr unsigned kHoldMost = 8;
  /// While so many are held, because the fabric below is full, no further one is.
  static constexpr std::size_t kHeldMost = 64;

  /// \param plan rates in 0..1; the first that applies of drop, reorder and duplicate happens
  FaultyFabric(std::unique_ptr<Fabric> below, const FaultPlan& plan, std::uint64_t seed);

  Result<std::uint32_t> claim_block() override { return below_->claim_block(); }
  SendOutcome send(std::uint32_t destination_qpn, const FrameHeader& header,
                   std::span<const FramePart> parts) override;
  std::size_t max_frame_bytes() const override { return below_->max_frame_bytes(); }
  std::size_t poll(FrameReceiver& receiver, std::size_t budget) override;
  /// Lets go of what is held first: nothing arrives late because its sender sleeps.
  void wait(std::chrono::nanoseconds timeout) override;
  void wake() override { below_->wake(); }

  const FaultCounters& counters() const { return counters_; }

 private:
  enum class Fate { pass, drop, duplicate, reorder };

  struct Held {
    StoredFrame frame;
    unsigned remaining;  ///< later frames or polls until it goes
  };

  double chance(unsigned draw) const;
  Fate fate() const;
  void hold(std::uint32_t destination_qpn, const FrameHeader& header, std::span<const FramePart> parts,
            unsigned remaining);
  void age();
  void release_due();

  std::unique_ptr<Fabric> below_;
  FaultPlan plan_;
  std::uint64_t seed_;
  FaultCounters counters_;
  std::deque<Held> held_;
};

}  // namespace belfry::softnic
