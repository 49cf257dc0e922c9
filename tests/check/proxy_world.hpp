#pragma once
/// \file
/// mini-proxy over the checked memory: a ring, the worker that serves it (src/proxy's RingReader and
/// RingService), and at the seam where it posts a queue to a NIC for each peer.

#include <deque>
#include <memory>
#include <vector>

#include "belfry/device/proxy.hpp"
#include "belfry/proxy/counters.hpp"
#include "check/gda_world.hpp"
#include "proxy/ring_service.hpp"

namespace belfry::check {

struct ProxySettings {
  unsigned log_slots = 2;
  unsigned peers = 1;
  unsigned chain = 1;  ///< work requests of one post at most
  std::optional<std::uint64_t> fails_at;
  /// Who writes the completion counter: the worker into host memory, or through a mapping of the GPU's; or
  /// the NIC.
  proxy::CounterPath counter = proxy::CounterPath::host;
  /// The NIC may write the counter relaxed: a window registered wrongly.
  bool relaxed_counter = false;
  device::MemoryKind payload = device::MemoryKind::own;
};

/// Posts as libmlx5 does, into host memory: WQEs, a fence, the record, a fence, the doorbell.
class CheckSubmitter final : public proxy::Submitter {
 public:
  /// \param queues a GdaWorld's each, which outlive it
  explicit CheckSubmitter(std::vector<const device::SendQueue*> queues);

  proxy::PostResult post(std::uint32_t queue, std::span<const proxy::Work> chain) override;
  std::size_t poll(std::span<proxy::WorkCompletion> out) override;
  std::uint32_t depth() const override;
  std::uint32_t qpn(std::uint32_t queue) const override { return queues_[queue].queue->qpn; }

 private:
  struct Queue {
    const device::SendQueue* queue = nullptr;
    std::uint64_t producer = 0;
    std::uint64_t entry = 0;
    std::vector<std::uint64_t> ids;  ///< [slot] of what was posted there
  };
  static void build_one(const device::SendQueue& queue, std::uint64_t index, const proxy::Work& work);
  std::vector<Queue> queues_;
};

/// A queue from this PE to itself, with a NIC of its own, by which the worker has its counter written
/// (src/proxy's NicWriter over libmlx5).
class CounterQueue {
 public:
  /// \param device observer of the NIC that it belongs to
  CounterQueue(World& world, void* words, bool relaxed, int device);
  bool write(std::size_t offset, std::uint64_t value);

 private:
  Ledger ledger_;
  device::SendQueue queue_;
  std::uint64_t words_;
  std::unique_ptr<CheckSubmitter> submitter_;
};

class ProxyWorld {
 public:
  ProxyWorld(World& world, const ProxySettings& settings);

  static device::Place word(unsigned i) { return {0, i * 16u}; }
  static device::Place signal(unsigned i) { return {1, i * 16u}; }
  std::uint64_t* local(device::Place place) const { return peers[0]->local(place); }
  std::uint64_t* remote(device::Place place, unsigned peer = 0) const { return peers[peer]->remote(place); }

  std::vector<GdaWorld*> peers;  ///< a queue and a NIC each; the windows are the first one's
  device::proxy::Ring ring;
  device::proxy::ProxyView view;
  std::unique_ptr<CheckSubmitter> submitter;
  std::unique_ptr<proxy::RingService> service;

 private:
  std::unique_ptr<proxy::Counter> make_counter(World& world, device::proxy::WorkerWords* words,
                                               const ProxySettings& settings);
};

}  // namespace belfry::check
