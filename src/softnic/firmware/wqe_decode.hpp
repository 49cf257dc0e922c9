#pragma once
/// \file
/// Stage two of the NIC: from the bytes of a fetched send WQE to a checked description of the work.
/// One source for the CPU and the GPU engine: no allocation, no host types, no reads past the image.

#include <cstdint>
#include <cstring>

#include "belfry/port/function.hpp"
#include "belfry/wire/cqe.hpp"
#include "belfry/wire/wqe.hpp"

namespace belfry::softnic {

inline constexpr std::uint32_t kMaxWqeBytes = wire::kMaxSegments * wire::kSegmentBytes;
inline constexpr std::uint32_t kMaxPieces = wire::kMaxSegments;

/// One stretch of a message: either bytes inside the WQE image, or keyed memory.
struct Piece {
  std::uint64_t address;  ///< keyed: as the WQE states it
  std::uint32_t key;
  std::uint32_t bytes;
  const unsigned char* inline_data;  ///< not null: the bytes are here and the key is unused
};

/// What an atomic WQE asks for, widened to 8 B.
struct AtomicOperands {
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
  std::uint64_t swap_mask = 0;  ///< masked fetch-add: the field boundary
  std::uint64_t compare_mask = 0;
  std::uint32_t bytes = 8;
};

struct DecodedWqe {
  wire::WqeOpcode opcode;
  std::uint8_t flags;    ///< fm_ce_se
  wire::Syndrome error;  ///< none, or why this WQE cannot be executed
  std::uint8_t vendor_error;
  std::uint32_t blocks;  ///< 64 B blocks it occupies, at least 1
  Be32 immediate;
  std::uint64_t remote_address;
  std::uint32_t remote_key;
  std::uint32_t piece_count;
  std::uint64_t total_bytes;
  AtomicOperands atomic;
  Piece pieces[kMaxPieces];

  /// With an event or without.
  BELFRY_FN bool signalled() const { return (flags & wire::kWqeCompletionAlways) != 0; }
};

/// Vendor syndromes of ours for WQEs that never reach the wire. Real devices have their own numbers,
/// which are not public; these only need to tell the causes apart.
inline constexpr std::uint8_t kVendorBadOpcode = 0x71;
inline constexpr std::uint8_t kVendorBadSize = 0x72;
inline constexpr std::uint8_t kVendorWrongQueue = 0x73;
inline constexpr std::uint8_t kVendorLength = 0x74;
inline constexpr std::uint8_t kVendorNoDepth = 0x75;

BELFRY_FN inline bool is_atomic(wire::WqeOpcode o) {
  return o == wire::WqeOpcode::atomic_compare_swap || o == wire::WqeOpcode::atomic_fetch_add ||
         o == wire::WqeOpcode::atomic_masked_compare_swap || o == wire::WqeOpcode::atomic_masked_fetch_add;
}
BELFRY_FN inline bool is_write(wire::WqeOpcode o) {
  return o == wire::WqeOpcode::rdma_write || o == wire::WqeOpcode::rdma_write_immediate;
}
BELFRY_FN inline bool is_send(wire::WqeOpcode o) {
  return o == wire::WqeOpcode::send || o == wire::WqeOpcode::send_immediate;
}
/// Operations whose result lands in this side's memory.
BELFRY_FN inline bool needs_response(wire::WqeOpcode o) {
  return o == wire::WqeOpcode::rdma_read || is_atomic(o);
}

namespace detail {

/// Reads segments off a WQE image, never past its end.
class SegmentCursor {
 public:
  BELFRY_FN SegmentCursor(const unsigned char* image, std::uint32_t bytes)
      : at_(image), end_(image + bytes) {}
  template <class Segment>
  BELFRY_FN bool take(Segment& out) {
    if (remaining() < sizeof(Segment)) return false;
    std::memcpy(&out, at_, sizeof(Segment));
    at_ += sizeof(Segment);
    return true;
  }
  BELFRY_FN std::uint32_t remaining() const { return static_cast<std::uint32_t>(end_ - at_); }
  BELFRY_FN const unsigned char* position() const { return at_; }
  BELFRY_FN void skip(std::uint32_t bytes) { at_ += bytes < remaining() ? bytes : remaining(); }

 private:
  const unsigned char* at_;
  const unsigned char* end_;
};

BELFRY_FN inline bool decode_masked(SegmentCursor& cursor, DecodedWqe& out, std::uint8_t opmod) {
  const bool swap = out.opcode == wire::WqeOpcode::atomic_masked_compare_swap;
  auto& a = out.atomic;
  if (opmod == wire::kOpmodMaskedAtomic8) {
    a.bytes = 8;
    if (swap) {
      wire::MaskedCompareSwapSegment s;
      if (!cursor.take(s)) return false;
      a = {s.swap.get(), s.compare.get(), s.swap_mask.get(), s.compare_mask.get(), 8};
    } else {
      wire::MaskedFetchAddSegment s;
      if (!cursor.take(s)) return false;
      a = {s.add.get(), 0, s.field_boundary.get(), 0, 8};
    }
    return true;
  }
  if (opmod != wire::kOpmodMaskedAtomic4) return false;
  if (swap) {
    wire::MaskedCompareSwapSegment4 s;
    if (!cursor.take(s)) return false;
    a = {s.swap.get(), s.compare.get(), s.swap_mask.get(), s.compare_mask.get(), 4};
  } else {
    wire::MaskedFetchAddSegment4 s;
    if (!cursor.take(s)) return false;
    a = {s.add.get(), 0, s.field_boundary.get(), 0, 4};
  }
  return true;
}

/// The segments that stand between the control segment and the data.
BELFRY_FN inline bool decode_operation(SegmentCursor& cursor, DecodedWqe& out, std::uint8_t opmod) {
  const wire::WqeOpcode o = out.opcode;
  if (is_write(o) || needs_response(o)) {
    wire::RemoteAddressSegment remote;
    if (!cursor.take(remote)) return false;
    out.remote_address = remote.address.get();
    out.remote_key = remote.rkey.get();
  }
  if (o == wire::WqeOpcode::atomic_compare_swap || o == wire::WqeOpcode::atomic_fetch_add) {
    wire::AtomicSegment s;
    if (!cursor.take(s)) return false;
    out.atomic = {s.swap_or_add.get(), s.compare.get(), ~0ull, ~0ull, 8};
  } else if (is_atomic(o)) {
    return decode_masked(cursor, out, opmod);
  }
  return true;
}

BELFRY_FN inline bool decode_pieces(SegmentCursor& cursor, DecodedWqe& out) {
  while (cursor.remaining() >= wire::kSegmentBytes) {
    wire::InlineHeader header;
    std::memcpy(&header, cursor.position(), sizeof header);
    const std::uint32_t count = header.flag_byte_count.get();
    Piece& piece = out.pieces[out.piece_count++];
    if (count & wire::kInlineFlag) {
      const std::uint32_t bytes = count & ~wire::kInlineFlag;
      if (bytes > cursor.remaining() - sizeof header) return false;
      piece = {0, 0, bytes, cursor.position() + sizeof header};
      const std::uint32_t occupied = static_cast<std::uint32_t>(sizeof header) + bytes;
      cursor.skip((occupied + wire::kSegmentBytes - 1) & ~(wire::kSegmentBytes - 1));
    } else {
      wire::DataSegment segment;
      if (!cursor.take(segment)) return false;
      // A count of 0 means 2^31 bytes in a send queue.
      const std::uint32_t bytes = count == 0 ? 0x80000000u : count;
      piece = {segment.address.get(), segment.lkey.get(), bytes, nullptr};
    }
    out.total_bytes += piece.bytes;
  }
  return true;
}

}  // namespace detail

/// Decodes the WQE whose bytes are in `image`.
/// \param available bytes of the image that were fetched; the DS field may ask for more, which is an error
/// \param out.pieces' inline data points into the image
BELFRY_FN inline void decode_wqe(const unsigned char* image, std::uint32_t available, DecodedWqe& out) {
  wire::ControlSegment control;
  std::memcpy(&control, image, sizeof control);
  const std::uint32_t segments = control.segments();
  out.opcode = control.opcode();
  out.flags = control.flags;
  out.immediate = control.immediate;
  out.error = wire::Syndrome::none;
  out.vendor_error = 0;
  out.remote_address = 0;
  out.remote_key = 0;
  out.piece_count = 0;
  out.total_bytes = 0;
  const std::uint32_t blocks = (segments + wire::kSegmentsPerBlock - 1) / wire::kSegmentsPerBlock;
  out.blocks = blocks == 0 ? 1 : blocks;

  const auto fail = [&out](std::uint8_t vendor) {
    out.error = wire::Syndrome::local_qp_operation;
    out.vendor_error = vendor;
    out.piece_count = 0;
  };
  const std::uint32_t bytes = segments * wire::kSegmentBytes;
  if (segments == 0 || bytes > available) return fail(kVendorBadSize);
  if (out.opcode == wire::WqeOpcode::nop) return;
  if (!is_write(out.opcode) && !is_send(out.opcode) && !needs_response(out.opcode))
    return fail(kVendorBadOpcode);
  detail::SegmentCursor cursor(image + sizeof control, bytes - static_cast<std::uint32_t>(sizeof control));
  if (!detail::decode_operation(cursor, out, control.opmod())) return fail(kVendorBadSize);
  if (!detail::decode_pieces(cursor, out)) return fail(kVendorBadSize);
  if (is_atomic(out.opcode) && out.total_bytes != out.atomic.bytes) return fail(kVendorLength);
}

}  // namespace belfry::softnic
