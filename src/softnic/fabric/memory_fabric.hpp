#pragma once
/// \file
/// A fabric inside one process, for tests and for systems that refuse the shared one. Nothing in it
/// depends on time or chance: frames arrive in the order in which they were sent, blocks are handed
/// out from 1 upwards.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "softnic/fabric/fabric.hpp"
#include "softnic/fabric/frame.hpp"

namespace belfry::softnic {

/// What the ports of one fabric share. Ports may live in different threads, and outlive the handle.
class MemoryHub : public std::enable_shared_from_this<MemoryHub> {
 public:
  /// \param capacity frames that wait at one port before senders to it see `full`; at least 1
  static std::shared_ptr<MemoryHub> create(std::size_t capacity = 1024);

  std::unique_ptr<Fabric> open_port();

 private:
  friend class MemoryFabric;

  struct Port {
    std::deque<StoredFrame> arrived;
    std::condition_variable changed;
    bool woken = false;
  };

  explicit MemoryHub(std::size_t capacity) : capacity_(capacity ? capacity : 1) {}

  const std::size_t capacity_;
  std::mutex mutex_;
  std::map<std::uint32_t, Port*> owners_;  ///< by block
};

class MemoryFabric final : public Fabric {
 public:
  explicit MemoryFabric(std::shared_ptr<MemoryHub> hub) : hub_(std::move(hub)) {}
  ~MemoryFabric() override;

  Result<std::uint32_t> claim_block() override;
  SendOutcome send(std::uint32_t destination_qpn, const FrameHeader& header,
                   std::span<const FramePart> parts) override;
  std::size_t max_frame_bytes() const override { return kMaxFrameBytes; }
  std::size_t poll(FrameReceiver& receiver, std::size_t budget) override;
  void wait(std::chrono::nanoseconds timeout) override;
  void wake() override;

 private:
  std::shared_ptr<MemoryHub> hub_;
  MemoryHub::Port port_;
};

}  // namespace belfry::softnic
