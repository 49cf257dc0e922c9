#pragma once
/// \file
/// The descriptor that a GPU thread hands to a CPU worker: 16 B, so that one store makes all of it valid. The
/// format is belfry's own. A request takes one descriptor, or a few in a row where it does not fit one.
///
/// Bit budget of a request (bits of `low`, then of `high`):
///
///     low   0      parity: flips with each lap of the ring, 1 in the first
///           1-4    operation
///           5      an Extension follows
///           6-19   peer: a PE, at most 16384
///           20-25  remote window, at most 64
///           26-31  local window                 | value forms: 26-27 log2 of the bytes, 28-31 unused
///           32-63  length in bytes              | value forms: remote offset, low 32 bits
///     high  0-31   remote offset, low 32 bits   | value forms: the value
///           32-63  local offset, low 32 bits    |
///
/// Extension (for what exceeds 32 bits, and for second operands):
///
///     low   0      parity
///           1-4    operation: extension
///           5      another one follows
///           6-31   unused, 0
///           32-63  high bits of the length    | value forms: 0
///     high  0-31   high bits of the remote offset
///           32-63  high bits of the local offset
///
/// Operand (what an atomic needs beside its first descriptor): as an Extension, operation: operand, and no
/// bits of a length; high: 64 bits.
///
/// What is unused is 0, and a descriptor in which it is not is malformed: so the bits can be given a meaning.

#include <cstdint>

#include "belfry/port/function.hpp"
#include "belfry/port/vector.hpp"

namespace belfry::wire {

enum class ProxyOperation : std::uint8_t {
  none = 0,  ///< zeroed memory
  put = 1,
  get = 2,
  put_value = 3,     ///< value form
  signal_set = 4,    ///< value form, 8 B: what was sent before on this ring to this peer is visible before it
  signal_add = 5,    ///< value form, 8 B, atomic
  fetch_add = 6,     ///< as put with 8 B: local place is the result's; one operand: what to add
  compare_swap = 7,  ///< the same; two operands: compare, swap
  fence = 8,         ///< completes when all before it on this ring has
  extension = 14,
  operand = 15,
};

/// A field of a descriptor's half, named once for encoder and decoder. A type, for a GPU's code has no
/// address of a constant.
template <unsigned kShift, unsigned kWidth>
struct ProxyField {
  static_assert(kShift + kWidth <= 64 && kWidth < 64);
  static constexpr unsigned shift = kShift;
  static constexpr unsigned bits = kWidth;
  static constexpr std::uint64_t most = (std::uint64_t{1} << kWidth) - 1;

  /// The value in its place, cut to its bits.
  BELFRY_FN static constexpr std::uint64_t put(std::uint64_t value) { return (value & most) << kShift; }
  BELFRY_FN static constexpr std::uint64_t get(std::uint64_t half) { return (half >> kShift) & most; }
};

using ProxyParityField = ProxyField<0, 1>;
using ProxyOperationField = ProxyField<1, 4>;
using ProxyMoreField = ProxyField<5, 1>;
using ProxyPeerField = ProxyField<6, 14>;
using ProxyRemoteWindowField = ProxyField<20, 6>;
using ProxyLocalWindowField = ProxyField<26, 6>;
using ProxyLogBytesField = ProxyField<26, 2>;
using ProxyUnusedField = ProxyField<28, 4>;      ///< value forms: zero
using ProxyUnusedNextField = ProxyField<6, 26>;  ///< extension and operand: zero
using ProxyUpperLowField = ProxyField<32, 32>;
using ProxyRemoteLowField = ProxyField<0, 32>;
using ProxyLocalLowField = ProxyField<32, 32>;
static_assert(ProxyLocalWindowField::shift + ProxyLocalWindowField::bits == ProxyUpperLowField::shift);
static_assert(ProxyRemoteWindowField::shift == ProxyPeerField::shift + ProxyPeerField::bits);

inline constexpr std::uint32_t kProxyMostPeers = 1u << ProxyPeerField::bits;
inline constexpr std::uint32_t kProxyMostWindows = 1u << ProxyRemoteWindowField::bits;
/// Descriptors that one request takes at most.
inline constexpr std::uint32_t kProxyMostDescriptors = 4;

/// A request, unpacked. Offsets and lengths are whole; which fields count depends on the operation.
struct ProxyRequest {
  ProxyOperation operation = ProxyOperation::none;
  std::uint32_t peer = 0;
  std::uint32_t remote_window = 0;
  std::uint32_t local_window = 0;
  std::uint64_t remote_offset = 0;
  std::uint64_t local_offset = 0;
  std::uint64_t bytes = 0;         ///< value forms: 1, 2, 4 or 8
  std::uint64_t value = 0;         ///< value forms; fetch_add: to add; compare_swap: to compare with
  std::uint64_t second_value = 0;  ///< compare_swap: to store
};

BELFRY_FN constexpr bool proxy_value_form(ProxyOperation operation) {
  return operation == ProxyOperation::put_value || operation == ProxyOperation::signal_set ||
         operation == ProxyOperation::signal_add;
}
BELFRY_FN constexpr std::uint32_t proxy_operands(ProxyOperation operation) {
  return operation == ProxyOperation::fetch_add ? 1 : operation == ProxyOperation::compare_swap ? 2 : 0;
}
/// Whether an offset or the length exceeds its 32 bits.
BELFRY_FN constexpr bool proxy_needs_extension(const ProxyRequest& r) {
  return ((r.remote_offset | r.local_offset | r.bytes) >> 32) != 0;
}
/// \return how many descriptors the request takes, at most kProxyMostDescriptors
BELFRY_FN constexpr std::uint32_t proxy_descriptors(const ProxyRequest& r) {
  return 1 + (proxy_needs_extension(r) ? 1 : 0) + proxy_operands(r.operation);
}

/// What a descriptor's slot must hold in `lap` to be valid.
BELFRY_FN constexpr std::uint64_t proxy_parity(std::uint64_t lap) { return (lap & 1) ^ 1; }

/// A request's first descriptor, without its parity.
BELFRY_INLINE_FN constexpr port::Vector16 proxy_first_descriptor(const ProxyRequest& r) {
  const std::uint64_t low = ProxyOperationField::put(static_cast<std::uint64_t>(r.operation)) |
                            ProxyMoreField::put(proxy_descriptors(r) > 1 ? 1 : 0) |
                            ProxyPeerField::put(r.peer) | ProxyRemoteWindowField::put(r.remote_window);
  if (proxy_value_form(r.operation)) {
    const std::uint64_t log_bytes = r.bytes == 8 ? 3 : r.bytes == 4 ? 2 : r.bytes == 2 ? 1 : 0;
    return {low | ProxyLogBytesField::put(log_bytes) | ProxyUpperLowField::put(r.remote_offset), r.value};
  }
  return {low | ProxyLocalWindowField::put(r.local_window) | ProxyUpperLowField::put(r.bytes),
          ProxyRemoteLowField::put(r.remote_offset) | ProxyLocalLowField::put(r.local_offset)};
}

/// One of a request's descriptors, without its parity.
/// \param number 0 for the first, then extension, then operands
BELFRY_FN constexpr port::Vector16 proxy_descriptor(const ProxyRequest& r, std::uint32_t number) {
  if (number == 0) return proxy_first_descriptor(r);
  const bool extended = proxy_needs_extension(r);
  const std::uint64_t more = ProxyMoreField::put(number + 1 < proxy_descriptors(r) ? 1 : 0);
  if (extended && number == 1) {
    const std::uint64_t high_bytes = proxy_value_form(r.operation) ? 0 : r.bytes >> 32;
    const std::uint64_t low =
        ProxyOperationField::put(static_cast<std::uint64_t>(ProxyOperation::extension)) | more |
        ProxyUpperLowField::put(high_bytes);
    return {low,
            ProxyRemoteLowField::put(r.remote_offset >> 32) | ProxyLocalLowField::put(r.local_offset >> 32)};
  }
  const std::uint64_t low =
      ProxyOperationField::put(static_cast<std::uint64_t>(ProxyOperation::operand)) | more;
  return {low, number == (extended ? 2u : 1u) ? r.value : r.second_value};
}

/// Puts a request together again, descriptor by descriptor.
class ProxyDecoder {
 public:
  enum class State : std::uint8_t {
    more,       ///< the next descriptor belongs to the same request
    complete,   ///< request() is whole
    malformed,  ///< no producer of belfry writes this
  };

  BELFRY_FN constexpr State take(port::Vector16 d) {
    const auto operation = static_cast<ProxyOperation>(ProxyOperationField::get(d.low));
    const bool more = ProxyMoreField::get(d.low) != 0;
    const bool good = taken_ == 0 ? take_first(operation, d) : take_next(operation, d);
    ++taken_;
    if (!good) return end(State::malformed);
    if (more) return taken_ < kProxyMostDescriptors ? State::more : end(State::malformed);
    return end(operands_ == proxy_operands(request_.operation) ? State::complete : State::malformed);
  }
  BELFRY_FN constexpr const ProxyRequest& request() const { return request_; }

  /// A request in one descriptor, as most are, without this object's memory.
  /// \return false, and nothing has been taken: take() says what it is
  BELFRY_INLINE_FN constexpr bool take_whole(port::Vector16 d, ProxyRequest& out) const {
    const auto operation = static_cast<ProxyOperation>(ProxyOperationField::get(d.low));
    return taken_ == 0 && ProxyMoreField::get(d.low) == 0 && proxy_operands(operation) == 0 &&
           read_first(operation, d, out);
  }

 private:
  BELFRY_FN constexpr State end(State state) {
    taken_ = 0;
    return state;
  }
  BELFRY_FN constexpr bool take_first(ProxyOperation operation, port::Vector16 d) {
    operands_ = 0;
    extended_ = false;
    return read_first(operation, d, request_);
  }
  BELFRY_INLINE_FN static constexpr bool read_first(ProxyOperation operation, port::Vector16 d,
                                                    ProxyRequest& out) {
    out = ProxyRequest{};
    out.operation = operation;
    out.peer = static_cast<std::uint32_t>(ProxyPeerField::get(d.low));
    out.remote_window = static_cast<std::uint32_t>(ProxyRemoteWindowField::get(d.low));
    if (operation == ProxyOperation::none || operation > ProxyOperation::fence) return false;
    if (proxy_value_form(operation)) {
      out.bytes = std::uint64_t{1} << ProxyLogBytesField::get(d.low);
      out.remote_offset = ProxyUpperLowField::get(d.low);
      out.value = d.high;
      return ProxyUnusedField::get(d.low) == 0;
    }
    out.local_window = static_cast<std::uint32_t>(ProxyLocalWindowField::get(d.low));
    out.bytes = ProxyUpperLowField::get(d.low);
    out.remote_offset = ProxyRemoteLowField::get(d.high);
    out.local_offset = ProxyLocalLowField::get(d.high);
    return true;
  }
  BELFRY_FN constexpr bool take_next(ProxyOperation operation, port::Vector16 d) {
    if (ProxyUnusedNextField::get(d.low) != 0) return false;
    const bool has_length = ProxyUpperLowField::get(d.low) != 0;
    if (operation == ProxyOperation::extension) {
      if (extended_ || operands_ != 0) return false;
      if (has_length && proxy_value_form(request_.operation)) return false;
      extended_ = true;
      request_.bytes |= ProxyUpperLowField::get(d.low) << 32;
      request_.remote_offset |= ProxyRemoteLowField::get(d.high) << 32;
      request_.local_offset |= ProxyLocalLowField::get(d.high) << 32;
      return true;
    }
    if (operation != ProxyOperation::operand || has_length || operands_ >= proxy_operands(request_.operation))
      return false;
    (operands_++ == 0 ? request_.value : request_.second_value) = d.high;
    return true;
  }

  ProxyRequest request_;
  std::uint32_t taken_ = 0;
  std::uint32_t operands_ = 0;
  bool extended_ = false;
};

}  // namespace belfry::wire
