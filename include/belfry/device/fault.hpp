#pragma once
/// \file
/// A queue's fault in one 64-bit word, so that it can be latched by one atomic operation, by many pollers,
/// and read by anybody. 0 is no fault.

#include <cstdint>

#include "belfry/device/status.hpp"
#include "belfry/wire/index.hpp"

namespace belfry::device {

/// Bits 0-15: low bits of the index; 16-23: syndrome; 24-31: vendor syndrome; 32-34: Fault::Kind.
BELFRY_FN constexpr std::uint64_t fault_word(Fault::Kind kind, std::uint64_t index, wire::Syndrome syndrome,
                                             std::uint8_t vendor) {
  return (index & 0xffff) | static_cast<std::uint64_t>(syndrome) << 16 |
         static_cast<std::uint64_t>(vendor) << 24 | static_cast<std::uint64_t>(kind) << 32;
}

BELFRY_FN constexpr Fault::Kind fault_kind(std::uint64_t word) {
  return static_cast<Fault::Kind>((word >> 32) & 7u);
}

/// \param consumer the queue's: less than a queue away. It stops at or before a root; where the cause is
/// unknown, pollers who were under way when the fault was latched may have raised it since, and less is in
/// doubt
BELFRY_FN constexpr Fault decode_fault(std::uint64_t word, std::uint64_t consumer, std::uint32_t qpn) {
  Fault f;
  f.kind = fault_kind(word);
  if (f.kind == Fault::Kind::none) return f;
  f.index = wire::widen_index(consumer, static_cast<std::uint16_t>(word));
  if (f.kind == Fault::Kind::unknown && f.index < consumer) f.index = consumer;
  f.qpn = qpn;
  f.syndrome = static_cast<wire::Syndrome>((word >> 16) & 0xff);
  f.vendor = static_cast<std::uint8_t>(word >> 24);
  return f;
}

/// Whether `next` tells more than what is latched: an error of the NIC more than a turn that was given up,
/// for nothing on the queue completes after it; and a cause that is known more than one that is not.
BELFRY_FN constexpr bool fault_replaces(std::uint64_t latched, std::uint64_t next) {
  if (latched == 0) return next != 0;
  const Fault::Kind before = fault_kind(latched);
  const Fault::Kind after = fault_kind(next);
  if (before == Fault::Kind::abandoned) return after == Fault::Kind::root || after == Fault::Kind::unknown;
  return before == Fault::Kind::unknown && after == Fault::Kind::root;
}

}  // namespace belfry::device
