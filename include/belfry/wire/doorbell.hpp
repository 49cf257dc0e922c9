#pragma once
/// \file
/// Doorbell records and doorbell registers (UAR) of mlx5 devices. Source: providers/mlx5 of rdma-core.

#include <cstddef>
#include <cstdint>

#include "belfry/port/byte_order.hpp"

namespace belfry::wire {

/// A QP's doorbell record: 8 B in memory that the device reads.
struct QpDoorbellRecord {
  Be32 receive;  ///< word 0: receive producer, low 16 bits
  Be32 send;     ///< word 1: send producer in blocks, low 16 bits
};
static_assert(sizeof(QpDoorbellRecord) == 8 && offsetof(QpDoorbellRecord, send) == 4);

/// What a producer writes into its word of the record.
/// \param index the 64-bit producer: blocks in a send queue, entries in a receive queue
BELFRY_FN constexpr Be32 record_word(std::uint64_t index) {
  return Be32(static_cast<std::uint32_t>(index & 0xffff));
}

/// A CQ's doorbell record.
struct CqDoorbellRecord {
  Be32 consumer;  ///< word 0: consumer index, low 24 bits
  Be32 arm;       ///< word 1: sequence << 28 | command << 24 | consumer index
};
static_assert(sizeof(CqDoorbellRecord) == 8 && offsetof(CqDoorbellRecord, arm) == 4);

inline constexpr std::uint32_t kCqArmNext = 0u << 24;       ///< the next completion fires
inline constexpr std::uint32_t kCqArmSolicited = 1u << 24;  ///< the next solicited or erroneous one does
inline constexpr std::uint32_t kCqConsumerMask = 0xffffff;

/// \param sequence number of events that the consumer has taken, modulo 4
/// \param command  kCqArmNext or kCqArmSolicited
BELFRY_FN constexpr std::uint32_t cq_arm_word(std::uint32_t sequence, std::uint32_t command,
                                              std::uint64_t consumer) {
  return ((sequence & 3u) << 28) | command | static_cast<std::uint32_t>(consumer & kCqConsumerMask);
}
/// 0 is a valid arm word, so a device that compares must start from a word nobody writes.
inline constexpr std::uint32_t kCqNeverArmed = 0xffffffffu;

/// Offsets within a 4 KiB UAR page.
inline constexpr std::uint32_t kUarBytes = 4096;
inline constexpr std::uint32_t kUarCqDoorbell = 0x20;
inline constexpr std::uint32_t kUarFirstRegister = 0x800;
inline constexpr std::uint32_t kUarRegisterBytes = 0x200;      ///< one BlueFlame register, both halves
inline constexpr std::uint32_t kUarRegisterHalfBytes = 0x100;  ///< posts alternate between halves
inline constexpr std::uint32_t kUarRegistersPerPage = 2;

/// What a send doorbell writes. With a doorbell record: the first 8 B of the control segment of the last
/// WQE rung. Without one (send_dbr_mode): the same words, but their index is the producer's, one past the
/// last block rung, for the device has nothing else to go by.
/// \return the bits to store with one 8 B store
BELFRY_FN constexpr std::uint64_t send_doorbell(Be32 opmod_index_opcode, Be32 qpn_ds) {
  return static_cast<std::uint64_t>(opmod_index_opcode.raw()) |
         (static_cast<std::uint64_t>(qpn_ds.raw()) << 32);
}
BELFRY_FN constexpr std::uint16_t doorbell_index(std::uint64_t stored) {
  return static_cast<std::uint16_t>(swap_bytes(static_cast<std::uint32_t>(stored)) >> 8);
}
BELFRY_FN constexpr std::uint32_t doorbell_qpn(std::uint64_t stored) {
  return swap_bytes(static_cast<std::uint32_t>(stored >> 32)) >> 8;
}

/// What arming a CQ writes at kUarCqDoorbell.
BELFRY_FN constexpr std::uint64_t cq_arm_doorbell(std::uint32_t arm_word, std::uint32_t cqn) {
  return static_cast<std::uint64_t>(Be32(arm_word).raw()) |
         (static_cast<std::uint64_t>(Be32(cqn).raw()) << 32);
}

}  // namespace belfry::wire
