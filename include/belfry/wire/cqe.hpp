#pragma once
/// \file
/// Completion queue entries of mlx5 devices, 64 B form. A ring of 2^n entries; the owner bit of an
/// entry flips each lap, and `op_own` is the last byte that the device writes. With 128 B entries the
/// 64 B form is the second half. Source: mlx5dv.h (mlx5_cqe64, mlx5_err_cqe).

#include <cstddef>
#include <cstdint>

#include "belfry/port/byte_order.hpp"

namespace belfry::wire {

enum class CqeOpcode : std::uint8_t {
  requester = 0,
  responder_write_immediate = 1,
  responder_send = 2,
  responder_send_immediate = 3,
  responder_send_invalidate = 4,
  resize_cq = 5,
  no_packet = 6,
  signature_error = 12,
  requester_error = 13,
  responder_error = 14,
  invalid = 15,  ///< a fresh ring is filled with it, so that no entry reads as valid
};

/// Syndromes of the mlx5 name space. They are not ibverbs statuses: 0x15 is "transport retry
/// exceeded" here, which ibverbs calls 12. wire/syndrome.hpp maps the one to the other.
enum class Syndrome : std::uint8_t {
  none = 0x00,
  local_length = 0x01,
  local_qp_operation = 0x02,
  local_protection = 0x04,
  flushed = 0x05,
  memory_window_bind = 0x06,
  bad_response = 0x10,
  local_access = 0x11,
  remote_invalid_request = 0x12,
  remote_access = 0x13,
  remote_operation = 0x14,
  transport_retry_exceeded = 0x15,
  rnr_retry_exceeded = 0x16,
  remote_aborted = 0x22,
};

inline constexpr std::uint32_t kCqeBytes = 64;
inline constexpr std::uint8_t kCqeOwnerMask = 0x01;
inline constexpr std::uint8_t kCqeSolicited = 0x02;

/// A completion (mlx5_cqe64), reduced to the fields an RC queue uses.
struct Cqe {
  std::uint8_t reserved0[2];
  Be16 wqe_id;
  std::uint8_t reserved4[13];
  std::uint8_t ml_path;
  std::uint8_t reserved18[4];
  Be16 slid;
  Be32 flags_remote_qpn;
  std::uint8_t reserved28[4];
  Be32 srqn_user_index;  ///< CQE version 1: the QP's user index, low 24 bits
  Be32 immediate_or_key;
  std::uint8_t app;
  std::uint8_t app_opcode;
  Be16 app_info;
  Be32 byte_count;
  Be64 timestamp;
  Be32 opcode_qpn;   ///< requester: WQE opcode << 24 | QPN; responder: QPN
  Be16 wqe_counter;  ///< requester: first block's index; responder: receive index
  std::uint8_t signature;
  std::uint8_t op_own;  ///< opcode << 4 | format << 2 | solicited << 1 | owner

  BELFRY_FN constexpr CqeOpcode opcode() const { return static_cast<CqeOpcode>(op_own >> 4); }
  BELFRY_FN constexpr bool owner() const { return (op_own & kCqeOwnerMask) != 0; }
};
static_assert(sizeof(Cqe) == 64);
static_assert(offsetof(Cqe, wqe_id) == 2 && offsetof(Cqe, ml_path) == 17);
static_assert(offsetof(Cqe, slid) == 22 && offsetof(Cqe, flags_remote_qpn) == 24);
static_assert(offsetof(Cqe, srqn_user_index) == 32 && offsetof(Cqe, immediate_or_key) == 36);
static_assert(offsetof(Cqe, byte_count) == 44 && offsetof(Cqe, timestamp) == 48);
static_assert(offsetof(Cqe, opcode_qpn) == 56 && offsetof(Cqe, wqe_counter) == 60);
static_assert(offsetof(Cqe, signature) == 62 && offsetof(Cqe, op_own) == 63);

/// A completion in error (mlx5_err_cqe; the two hardware bytes: UCX, uct/ib/mlx5); opcode is requester_error
/// or responder_error.
struct ErrorCqe {
  std::uint8_t reserved0[32];
  Be32 srqn_user_index;
  std::uint8_t reserved36[16];
  std::uint8_t hardware_syndrome;  ///< internal to the device, as are the four high bits of the next
  std::uint8_t hardware_syndrome_type;
  std::uint8_t vendor_syndrome;
  std::uint8_t syndrome;
  Be32 opcode_qpn;   ///< WQE opcode << 24 | QPN
  Be16 wqe_counter;  ///< requester: first block of the WQE that failed; responder: receive index
  std::uint8_t signature;
  std::uint8_t op_own;

  BELFRY_FN constexpr CqeOpcode opcode() const { return static_cast<CqeOpcode>(op_own >> 4); }
  BELFRY_FN constexpr bool owner() const { return (op_own & kCqeOwnerMask) != 0; }
};
static_assert(sizeof(ErrorCqe) == 64);
static_assert(offsetof(ErrorCqe, srqn_user_index) == 32 && offsetof(ErrorCqe, hardware_syndrome) == 52);
static_assert(offsetof(ErrorCqe, vendor_syndrome) == 54);
static_assert(offsetof(ErrorCqe, syndrome) == 55 && offsetof(ErrorCqe, opcode_qpn) == 56);
static_assert(offsetof(ErrorCqe, wqe_counter) == 60 && offsetof(ErrorCqe, op_own) == 63);

/// Two bits of op_own: where a small payload lies, or that the entry stands for several.
enum class CqeFormat : std::uint8_t {
  plain = 0,
  inline_32 = 1,  ///< up to 32 B of payload in the first half of this entry
  inline_64 = 2,  ///< up to 64 B of payload in the 64 B before it (128 B entries)
  compressed = 3,
};
BELFRY_FN constexpr CqeFormat cqe_format(std::uint8_t op_own) {
  return static_cast<CqeFormat>((op_own >> 2) & 3u);
}

BELFRY_FN constexpr std::uint8_t make_op_own(CqeOpcode opcode, bool solicited, bool owner) {
  return static_cast<std::uint8_t>((static_cast<unsigned>(opcode) << 4) | (solicited ? kCqeSolicited : 0u) |
                                   (owner ? 1u : 0u));
}

/// op_own of an entry that the device has never written. Whoever makes a ring fills it so.
inline constexpr std::uint8_t kCqeNeverWritten = make_op_own(CqeOpcode::invalid, false, false);

/// Whether the entry at `consumer` has been written in its lap.
/// \param op_own      the entry's last byte, loaded with acquire; nothing else of it may be read before
/// \param consumer    64-bit index of the entry
/// \param log_entries log2 of the ring's size
BELFRY_FN constexpr bool cqe_ready(std::uint8_t op_own, std::uint64_t consumer, std::uint32_t log_entries) {
  const bool lap = ((consumer >> log_entries) & 1) != 0;
  return static_cast<CqeOpcode>(op_own >> 4) != CqeOpcode::invalid && ((op_own & kCqeOwnerMask) != 0) == lap;
}

/// Advances a 64-bit consumer past the block that a CQE's 16-bit counter names.
/// \param consumer first block not known to be complete
/// \param counter  the CQE's wqe_counter: the first block of the last completed WQE
/// \return one past that block, never less than `consumer`; blocks behind the first one of a
///         multi-block WQE are freed by whoever knows its size
BELFRY_FN constexpr std::uint64_t advance_consumer(std::uint64_t consumer, std::uint16_t counter) {
  // The distance from the last retired block to the completed one, modulo 2^16. Queues hold at most
  // 32768 blocks, so a distance above that means the CQE is older than the consumer.
  const auto ahead = static_cast<std::uint16_t>(static_cast<std::uint16_t>(counter + 1u) -
                                                static_cast<std::uint16_t>(consumer));
  return ahead <= 0x8000u ? consumer + ahead : consumer;
}

}  // namespace belfry::wire
