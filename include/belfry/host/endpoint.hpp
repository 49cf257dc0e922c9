#pragma once
/// \file
/// The usual set-up in one object: a device, a window of memory, and queues to every peer, connected.
/// What it does can be done by hand with the other headers; it adds nothing of its own.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "belfry/host/bootstrap.hpp"
#include "belfry/host/context.hpp"
#include "belfry/host/devx_queue.hpp"
#include "belfry/host/environment.hpp"
#include "belfry/host/memory.hpp"
#include "belfry/host/verbs_queue.hpp"

namespace belfry::host {

enum class QueueKind : std::uint8_t { verbs, devx };

struct EndpointOptions {
  ContextOptions context;
  QueueKind kind = QueueKind::verbs;
  VerbsQueueOptions verbs;  ///< used if kind is verbs
  DevxQueueOptions devx;    ///< used if kind is devx
  ConnectionParameters connection;
  std::size_t window_bytes = std::size_t{1} << 20;
  Access window_access = kAllAccess;
  AllocationOptions allocation;
  int queues_per_peer = 1;    ///< 1..4096, the same on every rank
  bool connect_self = false;  ///< queues to this rank itself too; the same on every rank
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< for each exchange

  /// The defaults, changed by what the environment says.
  static EndpointOptions from(const Environment& environment);
};

class Endpoint {
 public:
  /// Every rank of the bootstrap makes one, with matching options; all return connected.
  /// Throws Error: whatever a step of it throws, and bad_argument where ranks' options do not match.
  Endpoint(Bootstrap& bootstrap, const EndpointOptions& options);
  /// The same on a device that is open already; options.context is not used.
  Endpoint(Bootstrap& bootstrap, const Context& context, const EndpointOptions& options);
  ~Endpoint();
  Endpoint(Endpoint&&) noexcept;
  Endpoint& operator=(Endpoint&&) noexcept;

  int rank() const;
  int size() const;
  const Context& context() const;
  const ProtectionDomain& domain() const;
  const Memory& memory() const;  ///< this rank's window

  /// A rank's window, this one's included. Throws Error (bad_argument) for a rank that does not exist.
  const WindowDescription& window(int rank) const;

  /// The queue to `peer`. Throws Error (bad_argument) if there is none such, or of another kind.
  Queue& queue(int peer, int index = 0) const;
  VerbsQueue& verbs_queue(int peer, int index = 0) const;
  DevxQueue& devx_queue(int peer, int index = 0) const;

  /// One line for each choice made on the way (device, GID, path MTU, depths), with its reason.
  const std::vector<std::string>& decisions() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::host
