#include "softnic/fabric/memory_fabric.hpp"

#include <algorithm>
#include <cerrno>

namespace belfry::softnic {

std::shared_ptr<MemoryHub> MemoryHub::create(std::size_t capacity) {
  return std::shared_ptr<MemoryHub>(new MemoryHub(capacity));
}

std::unique_ptr<Fabric> MemoryHub::open_port() { return std::make_unique<MemoryFabric>(shared_from_this()); }

MemoryFabric::~MemoryFabric() {
  const std::lock_guard lock(hub_->mutex_);
  std::erase_if(hub_->owners_, [this](const auto& entry) { return entry.second == &port_; });
}

Result<std::uint32_t> MemoryFabric::claim_block() {
  const std::lock_guard lock(hub_->mutex_);
  for (std::uint32_t block = 1; block < kQpnBlocks; ++block) {
    if (hub_->owners_.try_emplace(block, &port_).second) return block;
  }
  return Errno{ENOSPC};
}

SendOutcome MemoryFabric::send(std::uint32_t destination_qpn, const FrameHeader& header,
                               std::span<const FramePart> parts) {
  if (!well_formed(header, parts, kMaxFrameBytes)) return SendOutcome::unreachable;
  const std::lock_guard lock(hub_->mutex_);
  const auto owner = hub_->owners_.find(destination_qpn >> kQpnBlockBits);
  if (owner == hub_->owners_.end()) return SendOutcome::unreachable;
  MemoryHub::Port& port = *owner->second;
  if (port.arrived.size() >= hub_->capacity_) return SendOutcome::full;
  port.arrived.emplace_back(destination_qpn, header, parts);
  port.changed.notify_one();
  return SendOutcome::sent;
}

std::size_t MemoryFabric::poll(FrameReceiver& receiver, std::size_t budget) {
  std::size_t done = 0;
  std::unique_lock lock(hub_->mutex_);
  // Frames that the receiver sends to this very port wait for the next call.
  std::size_t waiting = std::min(budget, port_.arrived.size());
  for (; waiting > 0; --waiting, ++done) {
    const StoredFrame frame = std::move(port_.arrived.front());
    port_.arrived.pop_front();
    lock.unlock();  // the receiver sends
    receiver.receive(frame.header, frame.data.data());
    lock.lock();
  }
  return done;
}

void MemoryFabric::wait(std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  const auto limit =
      std::clamp<std::chrono::nanoseconds>(timeout, timeout.zero(), Clock::time_point::max() - now);
  std::unique_lock lock(hub_->mutex_);
  port_.changed.wait_until(lock, now + limit, [this] { return port_.woken || !port_.arrived.empty(); });
  port_.woken = false;
}

void MemoryFabric::wake() {
  const std::lock_guard lock(hub_->mutex_);
  port_.woken = true;
  port_.changed.notify_one();
}

}  // namespace belfry::softnic
