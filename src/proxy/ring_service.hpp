#pragma once
/// \file
/// One ring, served: descriptors in, work to the queues, a count out.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "belfry/device/window.hpp"
#include "belfry/wire/proxy.hpp"
#include "proxy/completion_order.hpp"
#include "proxy/counter.hpp"
#include "proxy/fifo.hpp"
#include "proxy/ring_reader.hpp"
#include "proxy/submitter.hpp"

namespace belfry::proxy {

/// Where a ring's requests may go.
struct Routes {
  std::vector<device::LocalWindow> windows;
  std::vector<device::RemoteWindow> remotes;  ///< [window * peers + peer]
  std::vector<std::uint32_t> queues;          ///< submitter's queue for each peer; kNoQueue: none
  std::uint64_t sink = 0;                     ///< 8 B of registered memory: results nobody wants
  std::uint32_t sink_lkey = 0;
  std::uint64_t max_message = 1 << 30;  ///< bytes of one work request at most

  static constexpr std::uint32_t kNoQueue = ~0u;
};

struct ServiceOptions {
  std::uint32_t chain = 16;  ///< work requests of one post at most (B)
  std::uint32_t descriptors_a_turn = 64;

  /// Where rings share a worker, a turn is one chain: no ring keeps another waiting for longer.
  static ServiceOptions of(std::uint32_t chain, bool worker_is_shared) {
    return {chain, worker_is_shared ? chain : std::max<std::uint32_t>(64, chain)};
  }
};

class RingService {
 public:
  RingService(RingReader reader, Routes routes, std::unique_ptr<Counter> counter,
              const ServiceOptions& options);

  /// Takes what is in the ring, as far as the queues have room, and posts it.
  /// \return whether anything moved
  bool serve(Submitter& submitter);

  /// A completion of one of this ring's queues.
  void complete(Submitter& submitter, const WorkCompletion& completion);

  /// Latches a fault that is not the NIC's own (a worker that ends). Requests that come later are dropped.
  /// \param fault `dropped_from` is filled in here
  void fail(RingFault fault);

  void beat(std::uint64_t beat) { counter_->heartbeat(beat); }
  bool failed() const { return failed_; }
  /// Whether nothing is on its way.
  bool idle() const { return order_.empty(); }
  std::span<const std::uint32_t> queues() const { return routes_.queues; }
  std::uint64_t completed() const { return completed_; }

 private:
  struct Lane {
    Fifo<Work> pending;                  ///< not accepted yet; a chain is posted from where it lies
    std::uint32_t outstanding = 0;       ///< accepted and not known to be complete
    Fifo<std::uint32_t> signaled_sizes;  ///< how much each signaled completion stands for
    std::uint32_t since_signal = 0;
    std::uint64_t covered = 0;  ///< requests of this queue with lower numbers precede what comes next
  };

  bool take_descriptor();
  void take_part(port::Vector16 descriptor, std::uint64_t index);
  /// A descriptor that nobody of ours can have written.
  void refuse(std::uint64_t index);
  void start(const wire::ProxyRequest& request, std::uint64_t last);
  bool check(const wire::ProxyRequest& request) const;
  void fill(Work& work, const wire::ProxyRequest& request) const;
  void cut(Lane& lane, std::uint64_t bytes);
  bool has_room() const;
  bool flush(Submitter& submitter, std::uint32_t peer);
  void publish();
  std::uint32_t peer_of(std::uint32_t queue) const;

  RingReader reader_;
  Routes routes_;
  std::unique_ptr<Counter> counter_;
  ServiceOptions options_;
  wire::ProxyDecoder decoder_;
  CompletionOrder order_;
  std::vector<Lane> lanes_;
  std::uint64_t completed_ = 0;
  std::size_t pending_ = 0;  ///< of all lanes
  bool failed_ = false;
};

}  // namespace belfry::proxy
