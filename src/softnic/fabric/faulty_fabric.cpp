#include "softnic/fabric/faulty_fabric.hpp"

#include <algorithm>
#include <utility>

#include "softnic/fabric/random.hpp"

namespace belfry::softnic {

FaultyFabric::FaultyFabric(std::unique_ptr<Fabric> below, const FaultPlan& plan, std::uint64_t seed)
    : below_(std::move(below)), plan_(plan), seed_(mix(seed)) {}

/// In 0..1, for one of several questions about the next frame.
double FaultyFabric::chance(unsigned draw) const {
  const std::uint64_t bits = mix(seed_ ^ mix(counters_.frames * 8 + draw));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

FaultyFabric::Fate FaultyFabric::fate() const {
  if (chance(0) < plan_.drop) return Fate::drop;
  if (chance(1) < plan_.reorder) return Fate::reorder;
  if (chance(2) < plan_.duplicate) return Fate::duplicate;
  return Fate::pass;
}

/// A frame that the fabric below has no room for is not taken, so that the caller's next attempt meets
/// the same fate.
SendOutcome FaultyFabric::send(std::uint32_t destination_qpn, const FrameHeader& header,
                               std::span<const FramePart> parts) {
  if (!well_formed(header, parts, max_frame_bytes())) return SendOutcome::unreachable;
  const Fate what = fate();
  SendOutcome outcome = SendOutcome::sent;
  if (what == Fate::drop) {
    ++counters_.dropped;
  } else if (what == Fate::reorder && held_.size() < kHeldMost) {
    ++counters_.reordered;
    age();
    hold(destination_qpn, header, parts, 1 + static_cast<unsigned>(chance(3) * kHoldMost));
    ++counters_.frames;
    release_due();
    return SendOutcome::sent;
  } else {
    outcome = below_->send(destination_qpn, header, parts);
    if (outcome == SendOutcome::full) return outcome;
    if (what == Fate::duplicate && outcome == SendOutcome::sent) {
      ++counters_.duplicated;
      if (below_->send(destination_qpn, header, parts) == SendOutcome::full) {
        hold(destination_qpn, header, parts, 0);
      }
    }
  }
  ++counters_.frames;
  age();
  release_due();
  return outcome;
}

std::size_t FaultyFabric::poll(FrameReceiver& receiver, std::size_t budget) {
  age();
  release_due();
  return below_->poll(receiver, budget);
}

void FaultyFabric::wait(std::chrono::nanoseconds timeout) {
  for (Held& held : held_) held.remaining = 0;
  release_due();
  // What finds no room still has to go: nobody tells when there is room, so look again soon.
  constexpr std::chrono::nanoseconds kSoon = std::chrono::milliseconds(1);
  below_->wait(held_.empty() ? timeout : std::min(timeout, kSoon));
}

void FaultyFabric::hold(std::uint32_t destination_qpn, const FrameHeader& header,
                        std::span<const FramePart> parts, unsigned remaining) {
  held_.push_back({StoredFrame(destination_qpn, header, parts), std::min(remaining, kHoldMost)});
}

void FaultyFabric::age() {
  for (Held& held : held_) {
    if (held.remaining > 0) --held.remaining;
  }
}

/// Sends what has been held long enough. What finds no room stays; what nobody owns is lost, as on a wire.
void FaultyFabric::release_due() {
  std::erase_if(held_, [this](const Held& held) {
    if (held.remaining > 0) return false;
    const FramePart all{held.frame.data.data(), held.frame.data.size()};
    return below_->send(held.frame.destination_qpn, held.frame.header, {&all, 1}) != SendOutcome::full;
  });
}

}  // namespace belfry::softnic
