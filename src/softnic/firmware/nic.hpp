#pragma once
/// \file
/// The NIC of this process: every device, queue and key that its uverbs contexts have made, and the
/// engine that executes their work queues.
///
/// Control calls may come from any thread; each takes the NIC's lock. poll() is the engine; one
/// thread calls it at a time (Engine in engine.hpp, or a test that drives the NIC by hand).

#include <cstdint>
#include <memory>
#include <vector>

#include "softnic/config.hpp"
#include "softnic/fabric/fabric.hpp"
#include "softnic/firmware/control.hpp"
#include "softnic/identity.hpp"
#include "softnic/result.hpp"

namespace belfry::softnic {

class Nic {
 public:
  /// Joins the fabric that the configuration names. Throws std::system_error where that fails.
  explicit Nic(const Config& config);
  /// The same with a port of the caller's, for tests.
  Nic(const Config& config, std::unique_ptr<Fabric> port);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  const Config& config() const;
  const DeviceIdentity& device(unsigned index) const;

  /// Control calls return 0 or a positive errno, and change nothing where they fail.
  /// EINVAL: no such object or a bad attribute; ENOMEM: a limit is reached; EBUSY: still in use.
  /// \param owner the context it belongs to, see CqAttributes::owner
  Result<std::uint32_t> alloc_pd(unsigned device, const void* owner = nullptr);
  int dealloc_pd(std::uint32_t pd);

  /// \param page 4 KiB that the application can map; it outlives the UAR
  /// \return the page id that CQs and QPs name
  Result<std::uint32_t> attach_uar(void* page);
  int detach_uar(std::uint32_t uar);

  /// \return the key, index << 8 | variant; lkey and rkey are the same
  Result<std::uint32_t> create_mkey(const MkeyAttributes& attributes);
  int destroy_mkey(std::uint32_t key);

  /// Whose memory the range is: all of it one GPU's, or the host's. Without the NIC's lock.
  MemoryOwner owner_of(const void* address, std::size_t bytes);

  Result<std::uint32_t> create_cq(const CqAttributes& attributes);
  int resize_cq(std::uint32_t cqn, void* buffer, unsigned log_entries);
  int destroy_cq(std::uint32_t cqn);

  Result<std::uint32_t> create_qp(const QpAttributes& attributes);
  int modify_qp(std::uint32_t qpn, const QpModify& change);
  Result<QpSnapshot> query_qp(std::uint32_t qpn);
  int destroy_qp(std::uint32_t qpn);

  /// Runs the engine once over every queue that has work: doorbells, send queues, arriving packets,
  /// timers. \return units of work done; 0 means idle
  std::size_t poll();

  /// When poll() must run again for a timer, in ns of CLOCK_MONOTONIC; 0: no timer runs. As of the last
  /// poll(), for the thread that polls.
  std::uint64_t next_timer() const;

  /// The port to the fabric, for the thread that polls (wake() excepted).
  Fabric& fabric();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  int forget_mkey(std::uint32_t key);
  int forget_qp(std::uint32_t qpn);

  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::softnic
