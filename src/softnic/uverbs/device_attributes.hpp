#pragma once
/// \file
/// What the device says of itself, in one place for verbs and for DEVX. Everything that can be asked
/// twice is answered from here.

#include <bit>
#include <cstdint>

#include "belfry/wire/wqe.hpp"
#include "softnic/config.hpp"

namespace belfry::softnic {

inline constexpr std::uint32_t kVendorId = 0x02c9;
inline constexpr std::uint32_t kVendorPart = 4129;  ///< ConnectX-7
inline constexpr std::uint64_t kFirmwareMajor = 28;
inline constexpr std::uint64_t kFirmwareMinor = 39;
inline constexpr std::uint64_t kFirmwareSub = 1002;

inline constexpr std::uint32_t kMaxSendWqeBytes = 1024;
inline constexpr std::uint32_t kMaxReceiveWqeBytes = 512;
/// The mlx5 driver counts entries of a send request from 512 B at most: control and remote address
/// segments, and 30 data segments.
inline constexpr std::uint32_t kMaxSge = 30;
inline constexpr std::uint32_t kMaxReceiveSge = kMaxReceiveWqeBytes / wire::kSegmentBytes;
inline constexpr std::uint32_t kBlueFlameBytes = 512;  ///< one register, both halves
inline constexpr std::uint8_t kLocalAckDelay = 16;     ///< 4.096 us << n

/// floor(log2(value)), which is how capabilities state limits.
constexpr unsigned log_of(std::uint64_t value) {
  return value == 0 ? 0 : static_cast<unsigned>(std::bit_width(value)) - 1;
}

/// Work requests that a queue holds at most.
constexpr std::uint32_t max_queue_entries(const Limits& limits) {
  return limits.send_queue_blocks < limits.receive_entries ? limits.send_queue_blocks
                                                           : limits.receive_entries;
}

/// Entries of the partition key table; the first is the default key, the others are empty.
constexpr std::uint16_t pkey_count(LinkLayer link) { return link == LinkLayer::ethernet ? 1 : 128; }

/// enum ibv_mtu of a path MTU in bytes: 256 is 1, 4096 is 5.
constexpr std::uint8_t mtu_code(unsigned bytes) { return static_cast<std::uint8_t>(log_of(bytes) - 7); }

}  // namespace belfry::softnic
