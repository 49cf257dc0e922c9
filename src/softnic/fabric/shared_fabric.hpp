#pragma once
/// \file
/// The fabric between the processes of one host and one user: shared memory, no daemon, no file.
///
/// A port claims QPN blocks by binding their names (block_names.hpp), reaches another's block by
/// connecting to its name, and hands over the memory of a ring through that socket (hello.hpp); from
/// then on frames go through the ring (ring.hpp) without system calls. Everything is a descriptor, so
/// the kernel cleans up after any death: names and memory go, and the peers see their sockets hang up.
/// Frames that a dead peer had finished are still delivered.
///
/// A port belongs to the process that made it; in a child that fork() makes it is closed.

#include <bitset>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "softnic/fabric/block_names.hpp"
#include "softnic/fabric/counters.hpp"
#include "softnic/fabric/fabric.hpp"
#include "softnic/fabric/frame.hpp"
#include "softnic/fabric/incoming.hpp"
#include "softnic/fabric/outgoing.hpp"
#include "softnic/fabric/ring.hpp"
#include "softnic/fabric/watch.hpp"

namespace belfry::softnic {

struct SharedFabricOptions {
  std::string fabric = "default";       ///< at most kFabricNameMost bytes
  std::uint64_t seed = 0;               ///< of the blocks that are tried first; 0: from the system
  std::uint32_t ring_bytes = 1u << 20;  ///< a power of two, kRingBytesLeast..kRingBytesMost
  std::chrono::nanoseconds retry = std::chrono::milliseconds(10);  ///< between attempts to reach a block
};

class SharedFabric final : public Fabric {
 public:
  /// Throws std::system_error: a bad option, or a system that refuses what the fabric needs.
  explicit SharedFabric(const SharedFabricOptions& options);
  ~SharedFabric() override;

  Result<std::uint32_t> claim_block() override;
  SendOutcome send(std::uint32_t destination_qpn, const FrameHeader& header,
                   std::span<const FramePart> parts) override;
  std::size_t max_frame_bytes() const override { return kMaxFrameBytes; }
  std::size_t poll(FrameReceiver& receiver, std::size_t budget) override;
  void wait(std::chrono::nanoseconds timeout) override;
  void wake() override;

  const SharedFabricCounters& counters() const { return counters_; }

  /// Why this process cannot have a shared fabric, and the remedy; empty where it can.
  static std::string obstacle();

 private:
  using Clock = std::chrono::steady_clock;

  /// Frames of this port to itself take the same kind of ring, with both ends here.
  struct Loop {
    RingProducer producer;
    RingConsumer consumer;
  };

  SendOutcome send_to_self(const FrameHeader& header, std::span<const FramePart> parts);
  bool service_due(std::size_t delivered);
  bool service();

  // claim_block() may run during another thread's wait(): they meet in the epoll set alone, which is the
  // kernel's. Of what follows, claim_block() touches random_, own_ and the list of listeners, wait() the
  // rest.
  SharedFabricOptions options_;
  BlockNames names_;
  SharedFabricCounters counters_;
  Watch watch_;
  OwnedFd wake_;
  std::uint64_t random_;
  std::bitset<kQpnBlocks> own_;
  std::unique_ptr<Loop> loop_;
  Incoming incoming_;
  Outgoing outgoing_;
  Clock::time_point serviced_{};
  unsigned polls_ = 0;
};

}  // namespace belfry::softnic
