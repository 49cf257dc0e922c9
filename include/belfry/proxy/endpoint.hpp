#pragma once
/// \file
/// mini-proxy, set up: rings, the CPU workers behind them, queues to every peer, and the plain struct that a
/// kernel takes. The NIC may be any that rdma-core has a provider for.

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "belfry/device/proxy/ring.hpp"
#include "belfry/host/bootstrap.hpp"
#include "belfry/host/connection.hpp"
#include "belfry/host/placement.hpp"
#include "belfry/host/windows.hpp"
#include "belfry/proxy/counters.hpp"
#include "belfry/proxy/idle.hpp"

namespace belfry::proxy {

struct EndpointOptions {
  std::uint32_t rings = 1;         ///< R: 1..1024, the same on every PE
  std::uint32_t workers = 1;       ///< T: threads, 1..rings; ring r is worker r % T's
  std::uint32_t chain = 16;        ///< B: work requests of one post at most, 1..64
  std::uint32_t slots = 1024;      ///< descriptors in a ring, a power of two from 4 to 32768
  std::uint32_t send_depth = 256;  ///< work requests of each queue, at least `chain`
  bool self_queues = false;        ///< a peer may be this PE itself; the same on every PE
  IdlePolicy idle;
  bool pin = true;  ///< workers to CPUs near the NIC, within this process's affinity mask
  /// A worker whose heartbeat stands this long counts as lost to device threads that wait for it. 0: never.
  std::chrono::nanoseconds stall = std::chrono::seconds(5);
  /// Where device code's own state lies (RingState and tables).
  host::MemoryPlace state;
  /// Rings, and counters of CounterPath::host: host memory that device code reaches (for a GPU, pinned);
  /// null: plain host memory.
  std::shared_ptr<host::QueueMemory> ring_memory;
  /// Where completions are counted for device code. A GPU polls its own memory faster than the host's.
  CounterPath counters = CounterPath::automatic;
  host::MemoryPlace counter_memory;  ///< of gdrcopy and nic: the GPU's, in whole pages of 64 KiB for GDRCopy
  std::shared_ptr<CpuMapper> cpu_mapper;  ///< null: gdrcopy_mapper()
  host::ConnectionParameters connection;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of each exchange
  std::uint64_t first_index =
      0;  ///< where ring indices start, a multiple of slots; for tests of the 32-bit edge
  std::uint64_t max_message = 0;  ///< bytes of one work request at most; 0: the device's limit
};

class Endpoint {
 public:
  /// Every PE of the bootstrap makes one, with matching options; all return connected and served.
  /// Throws host::Error on every PE if it throws on one: bad_argument (options out of range or that do not
  /// match), locked_memory, not_reachable, timed_out, system.
  Endpoint(host::Bootstrap& bootstrap, const host::Windows& windows, const EndpointOptions& options = {});
  /// Ends the workers, after they have finished what was posted or a second has passed.
  ~Endpoint();
  Endpoint(Endpoint&&) noexcept;
  Endpoint& operator=(Endpoint&&) noexcept;

  /// What a kernel takes, by value; valid while this lives.
  const device::proxy::ProxyView& view() const;

  /// Whether the worker of this ring runs. Throws host::Error (bad_argument) for a ring that does not exist.
  bool worker_alive(std::uint32_t ring) const;
  /// host, gdrcopy or nic; decisions() has the reason.
  CounterPath counter_path() const;
  /// The CPU that it is pinned to; -1: none.
  int worker_cpu(std::uint32_t ring) const;
  /// What ended it; null while it runs.
  std::exception_ptr worker_failure(std::uint32_t ring) const;
  /// The ring's fault word (device/fault.hpp); 0: none.
  std::uint64_t fault_word(std::uint32_t ring) const;

  /// One line for each choice made on the way, with its reason.
  const std::vector<std::string>& decisions() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::proxy
