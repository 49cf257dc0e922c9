#pragma once
/// \file
/// The worker's end of a ring.

#include <cstdint>

#include "belfry/device/proxy/ring.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"
#include "belfry/wire/proxy.hpp"

namespace belfry::proxy {

/// Takes descriptors in order. The other end is device/proxy/enqueue.hpp: it stores 16 B at once, so that a
/// descriptor with the lap's parity is whole (mutant: proxy_parity).
class RingReader {
 public:
  /// \param slots   2^log_slots descriptors
  /// \param taken   where producers see how far this end is
  /// \param next    index to begin with
  RingReader(port::Vector16* slots, std::uint32_t log_slots, std::uint64_t* taken, std::uint64_t next = 0)
      : slots_(slots), log_slots_(log_slots), taken_(taken), next_(next) {}

  /// \return whether there was one
  bool take(port::Vector16& out) {
    const std::uint64_t mask = (std::uint64_t{1} << log_slots_) - 1;
    out = port::load_16(slots_ + (next_ & mask));
    const std::uint64_t parity = wire::proxy_parity(next_ >> log_slots_);
    if (port::kept(port::Step::proxy_parity)) {
      if (wire::ProxyParityField::get(out.low) != parity) return false;
    } else if (wire::ProxyOperationField::get(out.low) == 0) {
      return false;
    }
    ++next_;
    return true;
  }

  /// Gives the slots taken so far back to the producers. To be called before anything is done about what was
  /// taken: what a producer published before its descriptors comes before that, the NIC's reads included, and
  /// the next descriptors of these slots come after (mutant: proxy_acquire_descriptor).
  void give_back() {
    if (given_back_ == next_) return;
    given_back_ = next_;
    if (port::kept(port::Step::proxy_acquire_descriptor)) port::fence<port::Scope::system>();
    port::store<port::Scope::system>(taken_, next_);
  }

  std::uint64_t next() const { return next_; }

 private:
  port::Vector16* slots_;
  std::uint32_t log_slots_;
  std::uint64_t* taken_;
  std::uint64_t next_;
  std::uint64_t given_back_ = 0;
};

}  // namespace belfry::proxy
