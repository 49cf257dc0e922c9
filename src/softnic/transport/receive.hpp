#pragma once
/// \file
/// Frames from the fabric: to the requester or responder of the QP they name; and the answers owed.

#include "softnic/firmware/nic_core.hpp"

namespace belfry::softnic {

class PacketReceiver final : public FrameReceiver {
 public:
  explicit PacketReceiver(NicCore& core) : core_(core) {}
  void receive(const FrameHeader& header, const std::byte* data) override;
  /// Sends on what frames had for GPU memory: once they are all received, before anything is answered.
  void settle();

 private:
  NicCore& core_;
  // The last frame, to whose QP the bytes belong that are not in GPU memory yet.
  QueuePair* qp_ = nullptr;
  std::uint32_t psn_ = 0;
  bool is_request_ = false;
};

/// Sends what responders owe, as far as the fabric has room. \return frames sent
std::size_t send_owed(NicCore& core);

}  // namespace belfry::softnic
