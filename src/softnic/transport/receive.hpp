#pragma once
/// \file
/// Frames from the fabric: to the requester or responder of the QP they name; and the answers owed.

#include "softnic/firmware/nic_core.hpp"

namespace belfry::softnic {

class PacketReceiver final : public FrameReceiver {
 public:
  explicit PacketReceiver(NicCore& core) : core_(core) {}
  void receive(const FrameHeader& header, const std::byte* data) override;

 private:
  NicCore& core_;
};

/// Sends what responders owe, as far as the fabric has room. \return frames sent
std::size_t send_owed(NicCore& core);

}  // namespace belfry::softnic
