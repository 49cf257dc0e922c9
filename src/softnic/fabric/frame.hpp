#pragma once
/// \file
/// What every fabric does with a frame's parts.

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "softnic/fabric/fabric.hpp"

namespace belfry::softnic {

/// The largest path MTU, and room for every header in front of the payload.
inline constexpr std::size_t kMaxFrameBytes = 4096 + 256;

/// Whether `header.bytes` is the sum of the parts and within `most`.
inline bool well_formed(const FrameHeader& header, std::span<const FramePart> parts, std::size_t most) {
  std::size_t sum = 0;
  for (const FramePart& part : parts) {
    if (part.bytes > most) return false;  // so that the sum cannot wrap
    sum += part.bytes;
  }
  return sum == header.bytes && sum <= most;
}

/// Copies the parts one behind the other.
inline void gather(std::byte* to, std::span<const FramePart> parts) {
  for (const FramePart& part : parts) {
    if (part.bytes == 0) continue;  // its data may be null, which memcpy does not allow
    std::memcpy(to, part.data, part.bytes);
    to += part.bytes;
  }
}

/// A frame that something holds on to.
struct StoredFrame {
  StoredFrame() = default;
  StoredFrame(std::uint32_t qpn, const FrameHeader& frame_header, std::span<const FramePart> parts)
      : destination_qpn(qpn), header(frame_header), data(frame_header.bytes) {
    gather(data.data(), parts);
  }

  std::uint32_t destination_qpn = 0;
  FrameHeader header;
  std::vector<std::byte> data;
};

}  // namespace belfry::softnic
