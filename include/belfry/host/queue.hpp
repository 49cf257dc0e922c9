#pragma once
/// \file
/// What every RC queue pair of belfry can do, whoever made it: say its address and connect to a peer.
/// verbs_queue.hpp makes them by verbs, devx_queue.hpp as DEVX objects. This is setup; posting and
/// polling are post.hpp and completion.hpp, or the device API.

#include <cstdint>

#include "belfry/host/connection.hpp"
#include "belfry/host/memory.hpp"

namespace belfry::host {

class Queue {
 public:
  Queue() = default;
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  virtual std::uint32_t qpn() const = 0;

  /// What the peer's connect() needs. The same at every call.
  virtual QueueAddress local_address() const = 0;

  /// Takes the queue through INIT and RTR to RTS. Once only.
  /// \return the plan that was carried out, with its decisions
  /// Throws Error: not_reachable, bad_argument (also if connected before), or what the device refuses.
  virtual ConnectionPlan connect(const QueueAddress& remote, const ConnectionParameters& parameters) = 0;

  /// Moves the queue to the error state: everything outstanding completes as flushed.
  virtual void fail() = 0;
};

/// The address of a queue on `context`, with a random first PSN.
QueueAddress make_queue_address(const Context& context, std::uint32_t qpn);

}  // namespace belfry::host
