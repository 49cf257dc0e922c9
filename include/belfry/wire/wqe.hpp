#pragma once
/// \file
/// Send work queue entries of mlx5 devices. A WQE is a sequence of 16 B segments, laid out in 64 B
/// basic blocks of a ring that is circular in blocks: a segment never straddles the ring's end, but
/// a WQE may. Source: rdma-core's mlx5dv.h and providers/mlx5 (struct names given at each type).

#include <cstddef>
#include <cstdint>

#include "belfry/port/byte_order.hpp"

namespace belfry::wire {

inline constexpr std::uint32_t kBlockBytes = 64;    ///< one basic block (WQEBB)
inline constexpr std::uint32_t kSegmentBytes = 16;  ///< one octoword; the unit of the DS field
inline constexpr std::uint32_t kSegmentsPerBlock = kBlockBytes / kSegmentBytes;
inline constexpr std::uint32_t kMaxSegments = 63;  ///< DS is six bits wide
inline constexpr std::uint32_t kMaxSendQueueBlocks = 32768;

/// Opcode of a send WQE (low byte of the control segment's first word).
enum class WqeOpcode : std::uint8_t {
  nop = 0x00,
  send_invalidate = 0x01,
  rdma_write = 0x08,
  rdma_write_immediate = 0x09,
  send = 0x0a,
  send_immediate = 0x0b,
  rdma_read = 0x10,
  atomic_compare_swap = 0x11,
  atomic_fetch_add = 0x12,
  atomic_masked_compare_swap = 0x14,
  atomic_masked_fetch_add = 0x15,
  local_invalidate = 0x1b,
  umr = 0x25,
};

/// Bits of ControlSegment::flags (fm_ce_se).
inline constexpr std::uint8_t kWqeSolicited = 0x02;
inline constexpr std::uint8_t kWqeCompletionMask = 0x0c;
inline constexpr std::uint8_t kWqeCompletionAlways = 0x08;  ///< "signalled"
inline constexpr std::uint8_t kWqeCompletionAlwaysAndEvent = 0x0c;
inline constexpr std::uint8_t kWqeFenceMask = 0xe0;
inline constexpr std::uint8_t kWqeFence = 0x80;  ///< wait for earlier reads and atomics
inline constexpr std::uint8_t kWqeFenceInitiatorSmall = 0x20;
inline constexpr std::uint8_t kWqeFenceReads = 0x40;
inline constexpr std::uint8_t kWqeStrongOrdering = 0x60;

/// First segment of every send WQE (mlx5_wqe_ctrl_seg).
struct ControlSegment {
  Be32 opmod_index_opcode;  ///< opmod << 24 | first block's 16-bit index << 8 | opcode
  Be32 qpn_ds;              ///< QPN << 8 | number of 16 B segments
  std::uint8_t signature;
  std::uint8_t dci_stream[2];
  std::uint8_t flags;  ///< fm_ce_se: kWqe... bits
  Be32 immediate;      ///< immediate data as the receiver gets it, or a key

  BELFRY_FN constexpr WqeOpcode opcode() const {
    return static_cast<WqeOpcode>(opmod_index_opcode.get() & 0xff);
  }
  BELFRY_FN constexpr std::uint16_t index() const {
    return static_cast<std::uint16_t>(opmod_index_opcode.get() >> 8);
  }
  BELFRY_FN constexpr std::uint8_t opmod() const {
    return static_cast<std::uint8_t>(opmod_index_opcode.get() >> 24);
  }
  BELFRY_FN constexpr std::uint32_t qpn() const { return qpn_ds.get() >> 8; }
  BELFRY_FN constexpr std::uint32_t segments() const { return qpn_ds.get() & 0x3f; }
  BELFRY_FN constexpr bool signalled() const { return (flags & kWqeCompletionAlways) != 0; }
};
static_assert(sizeof(ControlSegment) == 16);
static_assert(offsetof(ControlSegment, qpn_ds) == 4 && offsetof(ControlSegment, signature) == 8);
static_assert(offsetof(ControlSegment, flags) == 11 && offsetof(ControlSegment, immediate) == 12);

/// \param index    first block's index; only its low 16 bits meet the wire
/// \param qpn      24 bits
/// \param segments 16 B segments of the whole WQE, at most kMaxSegments; more bits are cut off
BELFRY_FN constexpr ControlSegment make_control(WqeOpcode opcode, std::uint64_t index, std::uint32_t qpn,
                                                std::uint32_t segments, std::uint8_t flags,
                                                Be32 immediate = Be32(0), std::uint8_t opmod = 0) {
  ControlSegment c{};
  c.opmod_index_opcode.set((static_cast<std::uint32_t>(opmod) << 24) |
                           (static_cast<std::uint32_t>(index & 0xffff) << 8) |
                           static_cast<std::uint32_t>(opcode));
  c.qpn_ds.set((qpn << 8) | (segments & kMaxSegments));
  c.flags = flags;
  c.immediate = immediate;
  return c;
}

/// Target of a WRITE, READ or atomic (mlx5_wqe_raddr_seg).
struct RemoteAddressSegment {
  Be64 address;
  Be32 rkey;
  Be32 reserved;
};
static_assert(sizeof(RemoteAddressSegment) == 16 && offsetof(RemoteAddressSegment, rkey) == 8);

/// One scatter/gather entry (mlx5_wqe_data_seg). In a send queue a byte count of 0 means 2^31 bytes.
struct DataSegment {
  Be32 byte_count;  ///< bit 31 clear: it tells a data segment from an inline one
  Be32 lkey;
  Be64 address;
};
static_assert(sizeof(DataSegment) == 16);
static_assert(offsetof(DataSegment, lkey) == 4 && offsetof(DataSegment, address) == 8);

inline constexpr std::uint32_t kInlineFlag = 0x80000000u;
/// Ends a receive WQE's scatter list early (MLX5_INVALID_LKEY).
inline constexpr std::uint32_t kInvalidLkey = 0x100;

/// Header of inline data (mlx5_wqe_inl_data_seg): the bytes follow at once, and the whole is padded
/// to 16 B. Inline data wraps at the ring's end.
struct InlineHeader {
  Be32 flag_byte_count;  ///< kInlineFlag | bytes
};
static_assert(sizeof(InlineHeader) == 4);

/// Segments that `bytes` of inline data take, with their header and padding.
BELFRY_FN constexpr std::uint32_t inline_segments(std::uint32_t bytes) {
  return (static_cast<std::uint32_t>(sizeof(InlineHeader)) + bytes + kSegmentBytes - 1) / kSegmentBytes;
}
/// Blocks that a WQE of `segments` takes in the ring.
BELFRY_FN constexpr std::uint32_t wqe_blocks(std::uint32_t segments) {
  return (segments + kSegmentsPerBlock - 1) / kSegmentsPerBlock;
}

/// Operands of an 8 B atomic (mlx5_wqe_atomic_seg). Operands are big-endian here; memory and result
/// are in host order.
struct AtomicSegment {
  Be64 swap_or_add;
  Be64 compare;
};
static_assert(sizeof(AtomicSegment) == 16 && offsetof(AtomicSegment, compare) == 8);

/// 8 B masked compare-and-swap, two segments (opcode 0x14).
struct MaskedCompareSwapSegment {
  Be64 swap;
  Be64 compare;
  Be64 swap_mask;
  Be64 compare_mask;
};
static_assert(sizeof(MaskedCompareSwapSegment) == 32);

/// 8 B masked fetch-and-add, one segment (opcode 0x15): each set bit of the boundary is the last bit
/// of a field into which no carry passes on.
struct MaskedFetchAddSegment {
  Be64 add;
  Be64 field_boundary;
};
static_assert(sizeof(MaskedFetchAddSegment) == 16);

/// 4 B forms of the masked atomics, one segment each.
struct MaskedCompareSwapSegment4 {
  Be32 swap;
  Be32 compare;
  Be32 swap_mask;
  Be32 compare_mask;
};
static_assert(sizeof(MaskedCompareSwapSegment4) == 16);

struct MaskedFetchAddSegment4 {
  Be32 add;
  Be32 field_boundary;
  Be64 reserved;
};
static_assert(sizeof(MaskedFetchAddSegment4) == 16);

/// opmod of the masked opcodes: bit 3 says "extended atomic", the low bits are log2(bytes) - 2.
inline constexpr std::uint8_t kOpmodMaskedAtomic4 = 0x08;
inline constexpr std::uint8_t kOpmodMaskedAtomic8 = 0x09;

/// Address vector, compact 16 B form: the first segment of the full one (mlx5_base_av).
struct AddressVectorCompact {
  Be64 dc_key_or_qkey;  ///< DC access key; for UD the Q_Key in the high 32 bits
  Be32 destination_qp;  ///< bit 31: the full form follows (extended); low 24 bits: QPN or DCTN
  std::uint8_t stat_rate_sl;
  std::uint8_t fl_mlid;  ///< bit 7: force loopback; low bits: LID path bits, or RoCE flags
  Be16 rlid_or_udp_port;
};
static_assert(sizeof(AddressVectorCompact) == 16);
static_assert(offsetof(AddressVectorCompact, destination_qp) == 8);
static_assert(offsetof(AddressVectorCompact, rlid_or_udp_port) == 14);
inline constexpr std::uint32_t kAddressVectorExtended = 0x80000000u;

/// Address vector, full 48 B form (mlx5_wqe_av): compact form plus GRH.
struct AddressVector {
  AddressVectorCompact base;
  std::uint8_t reserved0[4];
  std::uint8_t destination_mac[6];
  std::uint8_t traffic_class;
  std::uint8_t hop_limit;
  Be32 grh_gid_flow;  ///< bit 30: GRH present; bits 20-27: source GID index; low 20: flow label
  std::uint8_t destination_gid[16];
};
static_assert(sizeof(AddressVector) == 48);
static_assert(offsetof(AddressVector, destination_mac) == 20);
static_assert(offsetof(AddressVector, grh_gid_flow) == 28);
static_assert(offsetof(AddressVector, destination_gid) == 32);

}  // namespace belfry::wire
