#pragma once
/// \file
/// InfiniBand transport headers, which RoCEv2 carries unchanged in UDP. Source: InfiniBand
/// Architecture Specification volume 1, chapter 9 (also in Linux, include/rdma/ib_pack.h). Fields are
/// packed: a header lies where the one before it ends.

#include <cstddef>
#include <cstdint>

#include "belfry/port/byte_order.hpp"

namespace belfry::wire {

inline constexpr std::uint32_t kPsnMask = 0xffffff;
inline constexpr std::uint32_t kQpnMask = 0xffffff;
inline constexpr std::uint16_t kRoceUdpPort = 4791;

/// RC opcodes (service type in the top three bits is 0).
enum class BthOpcode : std::uint8_t {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_last_immediate = 0x03,
  send_only = 0x04,
  send_only_immediate = 0x05,
  write_first = 0x06,
  write_middle = 0x07,
  write_last = 0x08,
  write_last_immediate = 0x09,
  write_only = 0x0a,
  write_only_immediate = 0x0b,
  read_request = 0x0c,
  read_response_first = 0x0d,
  read_response_middle = 0x0e,
  read_response_last = 0x0f,
  read_response_only = 0x10,
  acknowledge = 0x11,
  atomic_acknowledge = 0x12,
  compare_swap = 0x13,
  fetch_add = 0x14,
  send_last_invalidate = 0x16,
  send_only_invalidate = 0x17,
  flush = 0x1c,         ///< memory placement extensions; not executed by the software NIC
  atomic_write = 0x1d,  ///< likewise
  /// Masked atomics have no standard opcode; these two are reserved for RC and are understood by
  /// belfry's software NIC alone.
  masked_compare_swap = 0x1e,
  masked_fetch_add = 0x1f,
};

/// Base transport header.
struct Bth {
  BthOpcode opcode;
  std::uint8_t flags;  ///< solicited 0x80, migration 0x40, pad count 0x30, version 0x0f
  PackedBe16 pkey;
  PackedBe32 destination_qp;  ///< low 24 bits
  PackedBe32 ack_psn;         ///< bit 31: acknowledge request; low 24 bits: PSN
};
static_assert(sizeof(Bth) == 12 && offsetof(Bth, destination_qp) == 4 && offsetof(Bth, ack_psn) == 8);
inline constexpr std::uint8_t kBthSolicited = 0x80;
inline constexpr std::uint8_t kBthMigration = 0x40;
inline constexpr std::uint32_t kBthAckRequest = 0x80000000u;

/// RDMA extended transport header.
struct Reth {
  PackedBe64 address;
  PackedBe32 rkey;
  PackedBe32 length;
};
static_assert(sizeof(Reth) == 16 && offsetof(Reth, rkey) == 8 && offsetof(Reth, length) == 12);

/// Atomic extended transport header.
struct AtomicEth {
  PackedBe64 address;
  PackedBe32 rkey;
  PackedBe64 swap_or_add;
  PackedBe64 compare;
};
static_assert(sizeof(AtomicEth) == 28 && offsetof(AtomicEth, swap_or_add) == 12);

/// Belfry's header of masked atomics: AtomicEth, the masks and the operand's size.
struct MaskedAtomicEth {
  AtomicEth base;
  PackedBe64 swap_mask;  ///< fetch-add: the field boundary
  PackedBe64 compare_mask;
  PackedBe32 operand_bytes;  ///< 4 or 8
};
static_assert(sizeof(MaskedAtomicEth) == 48);

/// Acknowledge extended transport header.
struct Aeth {
  PackedBe32 syndrome_msn;  ///< syndrome << 24 | message sequence number
};
static_assert(sizeof(Aeth) == 4);

struct AtomicAckEth {
  PackedBe64 original;
};
static_assert(sizeof(AtomicAckEth) == 8);

struct ImmediateHeader {
  PackedBe32 immediate;
};
static_assert(sizeof(ImmediateHeader) == 4);

/// Invalidate extended transport header: the rkey that SEND with invalidate retires.
struct InvalidateEth {
  PackedBe32 rkey;
};
static_assert(sizeof(InvalidateEth) == 4);

/// AETH syndromes: two bits of kind, five of detail.
inline constexpr std::uint8_t kAethAck = 0x1f;  ///< ACK, credit count "invalid": no end-to-end credits
inline constexpr std::uint8_t kAethRnr = 0x20;  ///< | 5-bit timer code
inline constexpr std::uint8_t kAethNak = 0x60;  ///< | NakCode
inline constexpr std::uint8_t kAethKindMask = 0x60;

enum class NakCode : std::uint8_t {
  psn_sequence = 0,
  invalid_request = 1,
  remote_access = 2,
  remote_operation = 3,
};

/// Signed distance from `from` to `to` on the 24-bit circle.
BELFRY_FN constexpr std::int32_t psn_distance(std::uint32_t from, std::uint32_t to) {
  return static_cast<std::int32_t>((to - from) << 8) >> 8;
}

/// RNR timer code -> microseconds (IBTA table 45; the same as ibverbs' min_rnr_timer).
inline constexpr std::uint32_t kRnrTimerMicroseconds[32] = {
    655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
    480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
    20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

}  // namespace belfry::wire
