#pragma once
/// \file
/// Vendor syndromes of failed completions, as logs of real devices show them (NCCL, UCX and perftest issue
/// reports). Those of WQEs that never reach the wire are in wqe_decode.hpp.

#include <cstdint>

namespace belfry::softnic {

inline constexpr std::uint8_t kVendorRetryExceeded = 0x81;
inline constexpr std::uint8_t kVendorRnrExceeded = 0x87;
inline constexpr std::uint8_t kVendorRemoteAccess = 0x88;
inline constexpr std::uint8_t kVendorRemoteOperation = 0x89;
inline constexpr std::uint8_t kVendorRemoteInvalid = 0x8a;
inline constexpr std::uint8_t kVendorLocalProtection = 0x52;
inline constexpr std::uint8_t kVendorLocalLength = 0xd7;
inline constexpr std::uint8_t kVendorFlushed = 0xf9;
/// Ours: the memory was registered, and is not mapped any more.
inline constexpr std::uint8_t kVendorMemoryGone = 0x7f;

}  // namespace belfry::softnic
