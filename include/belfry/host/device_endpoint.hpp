#pragma once
/// \file
/// What device code posts with: DEVX queues to every peer, windows, and the plain struct that a kernel takes.
/// endpoint.hpp makes queues that the host posts to.

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "belfry/device/fault.hpp"
#include "belfry/device/queue_map.hpp"
#include "belfry/device/requirements.hpp"
#include "belfry/device/view.hpp"
#include "belfry/host/bootstrap.hpp"
#include "belfry/host/connection.hpp"
#include "belfry/host/context.hpp"
#include "belfry/host/devx_queue.hpp"
#include "belfry/host/doorbell_path.hpp"
#include "belfry/host/environment.hpp"
#include "belfry/host/placement.hpp"
#include "belfry/host/windows.hpp"

namespace belfry::host {

struct DeviceEndpointOptions {
  /// Queues to each peer, 1..65536, the same on every PE. device::QueueMap gives the number for one queue a
  /// block or a thread.
  std::uint64_t queues_a_peer = 1;
  bool self_queues = false;  ///< queues to this PE itself too; the same on every PE

  std::uint32_t blocks = 256;  ///< depth of each send queue in 64 B blocks, a power of two up to 32768
  DoorbellMode doorbell = DoorbellMode::record;
  CompletionLayout completions = CompletionLayout::collapsed;
  /// How many queues ring one doorbell register: 1, each its own. More need DoorbellMode::record.
  std::uint32_t queues_a_register = 1;
  Placement placement;
  /// Which way doorbells take. The device code is the same, and so are policies and orderings.
  DoorbellPath doorbell_path = DoorbellPath::automatic;
  ForwarderOptions forwarder;  ///< of the thread, where doorbells are CPU-assisted

  /// Where the 64-bit indices of every queue start. A multiple of 65536, because the device starts its 16
  /// bits at 0. For tests of the 32-bit edge.
  std::uint64_t first_index = 0;
  std::optional<std::uint64_t> max_message;  ///< bytes of one WQE at most; unset: the device's limit
  std::optional<ReadAtomicDepth> depth;      ///< what this end offers; unset: all that the device has
  ConnectionParameters connection;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of each exchange

  // What the constructor that opens a device and makes windows needs beside it.
  ContextOptions context;
  std::vector<WindowOptions> windows;

  /// The defaults, changed by what the environment says.
  static DeviceEndpointOptions from(const Environment& environment);

  /// Sets what a policy requires and these options choose: doorbell mode and completion layout. admit() says
  /// whether the rest holds. \return itself
  DeviceEndpointOptions& meet(const device::Requirements& requirements);
};

class DeviceEndpoint {
 public:
  /// Every PE of the bootstrap makes one, with matching options; all return connected. The device is that of
  /// the windows.
  /// Throws Error on every PE if it throws on one, the others' naming that rank: bad_argument (options out of
  /// range or that do not match), unsupported (no DEVX, no_record not offered or no register of its own for
  /// it), locked_memory, not_reachable, timed_out, system.
  DeviceEndpoint(Bootstrap& bootstrap, const Windows& windows, const DeviceEndpointOptions& options = {});
  /// The same after opening options.context and making options.windows.
  DeviceEndpoint(Bootstrap& bootstrap, const DeviceEndpointOptions& options);
  ~DeviceEndpoint();
  DeviceEndpoint(DeviceEndpoint&&) noexcept;
  DeviceEndpoint& operator=(DeviceEndpoint&&) noexcept;

  /// What a kernel takes, by value. What it points to lives as long as this endpoint, in the memory that the
  /// placement named. After the windows' entries, and not counted
  /// with them, comes one for the sink, which peers cannot reach.
  const device::EndpointView& view() const;

  /// Throws Error (unsupported) unless every queue and window meets what a policy requires; it says which
  /// requirement fails, where, and what to change. Assumption A2 (doorbell_only) cannot be tested: it is
  /// refused where it is known not to hold, on a shared register, and else the caller's word.
  void admit(const device::Requirements& requirements) const;

  const Windows& windows() const;
  const Context& context() const;

  // For these, a queue that does not exist throws Error (bad_argument).

  /// This host's copy of the entry in view().queues.
  const device::SendQueue& send_queue(std::uint32_t peer, std::uint32_t index = 0) const;
  DevxQueue& queue(std::uint32_t peer, std::uint32_t index = 0) const;
  /// Why the queue failed, as device code has latched it; of kind none if it has not.
  device::Fault fault(std::uint32_t peer, std::uint32_t index = 0) const;

  /// The way that doorbells take: gpu_rung or cpu_assisted. decisions() has the reason.
  DoorbellPath doorbell_path() const;
  /// Whether the thread runs that forwards doorbells; false where there is none.
  bool forwarder_alive() const;
  /// What ended it; null while it runs, and where there is none.
  std::exception_ptr forwarder_failure() const;

  /// One line for each choice made on the way, with its reason.
  const std::vector<std::string>& decisions() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::host
