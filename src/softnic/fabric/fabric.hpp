#pragma once
/// \file
/// What carries frames between the NICs of a fabric. Frames may be lost, and a peer may die at any
/// moment: the transport above recovers with PSNs and timers, as on a real wire.
///
/// QPNs are handed out in blocks that are unique in the fabric, so a QPN names the process to send to.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "softnic/identity.hpp"
#include "softnic/result.hpp"

namespace belfry::softnic {

inline constexpr std::uint32_t kQpnBlockBits = 12;
inline constexpr std::uint32_t kQpnsPerBlock = 1u << kQpnBlockBits;
inline constexpr std::uint32_t kQpnBlocks = 1u << (24 - kQpnBlockBits);

/// Stands where LRH and GRH (or Ethernet and IP headers) stand on a wire.
struct FrameHeader {
  std::uint32_t bytes = 0;       ///< of what follows: BTH, extended headers, payload
  std::uint32_t source_qpn = 0;  ///< not on a real wire for RC; lets a receiver drop strangers' frames
  std::uint16_t slid = 0;
  std::uint16_t dlid = 0;
  std::uint8_t global = 0;  ///< the GIDs are valid
  std::uint8_t sl = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t reserved = 0;
  Gid sgid{};
  Gid dgid{};
};
static_assert(sizeof(FrameHeader) == 48);

struct FramePart {
  const void* data;
  std::size_t bytes;
};

enum class SendOutcome : std::uint8_t {
  sent,         ///< on its way (it can still be lost)
  full,         ///< no room now; try again after a poll
  unreachable,  ///< nobody owns that QPN now: the frame is lost, as on a wire
};

class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  /// \param data `header.bytes` bytes, valid during the call only
  virtual void receive(const FrameHeader& header, const std::byte* data) = 0;
};

/// One NIC's port to the fabric. Used by one thread at a time, with two exceptions: wake() comes from any
/// thread at any time, and claim_block() may come while another thread is in wait().
class Fabric {
 public:
  virtual ~Fabric() = default;

  /// Claims a block of kQpnsPerBlock QPNs nobody else in the fabric has; it is free again when this
  /// object, or its process, is gone. Block 0 is never handed out. ENOSPC: all are taken.
  /// \return the block's number: its QPNs are block << kQpnBlockBits | 0..kQpnsPerBlock-1
  virtual Result<std::uint32_t> claim_block() = 0;

  /// Sends one frame to the owner of `destination_qpn`; `header.bytes` is the parts' sum, at most
  /// max_frame_bytes(). Never blocks. A QPN of this port itself is a valid destination.
  virtual SendOutcome send(std::uint32_t destination_qpn, const FrameHeader& header,
                           std::span<const FramePart> parts) = 0;

  virtual std::size_t max_frame_bytes() const = 0;

  /// Delivers at most `budget` arrived frames, in order of each sender. \return how many
  virtual std::size_t poll(FrameReceiver& receiver, std::size_t budget) = 0;

  /// Sleeps until a frame or a new peer arrives, wake() is called, or the time is over.
  virtual void wait(std::chrono::nanoseconds timeout) = 0;

  /// Ends a wait() that is going on or the next one. Any thread.
  virtual void wake() = 0;
};

}  // namespace belfry::softnic
