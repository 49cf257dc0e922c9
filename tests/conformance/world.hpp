#pragma once
/// \file
/// The host's side of a case: PEs of one process over the software NIC, each with an endpoint, and launches
/// on them.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "belfry/host/device_endpoint.hpp"
#include "conformance/runner.hpp"

namespace belfry::conformance {

using device::Place;

/// The windows of every world.
enum WindowNumber : std::uint32_t {
  kData,
  kSignals,
  kRelaxed,     ///< relaxed ordering: payload only
  kUnwritable,  ///< peers may read it, and that is all
  kWindows,     ///< how many
};
inline constexpr std::size_t kDataBytes = 1 << 20;
inline constexpr std::size_t kSignalBytes = 1 << 16;

struct WorldOptions {
  int pes = 2;
  std::size_t data_bytes = kDataBytes;
  host::DeviceEndpointOptions endpoint;

  WorldOptions();
};

/// What the worlds of every transport have.
class WorldBase {
 public:
  bool ok() const { return ok_; }
  std::uint32_t pes() const { return static_cast<std::uint32_t>(windows_.size()); }

  /// A PE's copy of a window, from a place on.
  std::byte* bytes(std::uint32_t pe, Place place) const;
  std::uint64_t word(std::uint32_t pe, Place place) const;
  void set_word(std::uint32_t pe, Place place, std::uint64_t value) const;

  /// Waits on a PE for a word to reach a value: what was put before on the same channel is visible then.
  void await(std::uint32_t pe, Place word, std::uint64_t value) const;

 protected:
  WorldBase() = default;
  /// Makes each PE's part in a thread of its own; it returns the PE's windows. Failures are failures of the
  /// test.
  void make(int pes, const std::function<host::Windows(std::size_t pe, host::Bootstrap&)>& make_pe);
  /// Those of WindowNumber.
  static std::vector<host::WindowOptions> windows_of(const WorldOptions& options);

 private:
  std::vector<std::optional<host::Windows>> windows_;
  bool ok_ = false;
};

/// How far a queue or ring has been filled.
struct Posted {
  std::uint64_t reserved;
  std::uint64_t published;
  std::uint64_t complete;  ///< all before it
  std::uint64_t fault;     ///< a fault word
};

/// mini-gda: connected endpoints of all PEs.
class World : public WorldBase {
 public:
  class Muted;

  /// \param requirements of the policies that will run on it
  World(const WorldOptions& options, const device::Requirements& requirements);

  host::DeviceEndpoint& endpoint(std::uint32_t pe) const { return *endpoints_[pe]; }
  const device::EndpointView& view(std::uint32_t pe) const { return endpoints_[pe]->view(); }
  /// Of queue `index` to a peer. Quiet while nobody posts.
  Posted posted(std::uint32_t pe, std::uint32_t peer, std::uint32_t index = 0) const;
  /// Takes the queue to a peer away from the NIC.
  Muted mute(std::uint32_t pe, std::uint32_t peer) const;

 private:
  std::vector<std::unique_ptr<host::DeviceEndpoint>> endpoints_;
};

/// The same, with doorbells that a CPU forwards.
class AssistedWorld : public World {
 public:
  AssistedWorld(const WorldOptions& options, const device::Requirements& requirements);
};

/// Runs kernels at the same time, each launch in a thread of its own.
void run_together(std::vector<std::function<void()>> launches);

/// A view of which the host has changed something: its arrays are copies.
class ChangedView {
 public:
  explicit ChangedView(const device::EndpointView& view);
  ChangedView(const ChangedView&) = delete;
  ChangedView& operator=(const ChangedView&) = delete;

  const device::EndpointView& view() const { return view_; }
  device::SendQueue& queue(std::uint32_t pe, std::uint32_t index = 0) {
    return queues_[pe * view_.queues_a_peer + index];
  }
  device::LocalWindow& window(std::uint32_t window) { return windows_[window]; }
  device::RemoteWindow& remote(std::uint32_t window, std::uint32_t pe) {
    return remotes_[window * view_.pe_count + pe];
  }
  /// A window more, with the addresses of `like`. \return its number
  std::uint32_t add_window(std::uint32_t like);

 private:
  /// The sink's entry comes after those that are windows.
  static std::uint32_t entries(const device::EndpointView& view);

  device::EndpointView view_;
  Array<device::SendQueue> queues_;
  Array<device::LocalWindow> windows_;
  Array<device::RemoteWindow> remotes_;
};

/// Takes doorbells and records of a queue away from the NIC, and rings for real when told to.
class MutedQueue {
 public:
  MutedQueue(ChangedView& view, std::uint32_t pe, std::uint32_t index = 0);

  /// What was rung last goes to the NIC.
  void ring() const;

 private:
  device::SendQueue real_;
  std::unique_ptr<Array<std::uint64_t>> words_;  ///< doorbell, record
};

/// A PE's view on which nothing reaches the NIC until it is told.
class World::Muted {
 public:
  Muted(const World& world, std::uint32_t pe, std::uint32_t peer)
      : changed_(std::make_unique<ChangedView>(world.view(pe))), queue_(*changed_, peer) {}
  const device::EndpointView& view() const { return changed_->view(); }
  void ring() const { queue_.ring(); }

 private:
  std::unique_ptr<ChangedView> changed_;
  MutedQueue queue_;
};
inline World::Muted World::mute(std::uint32_t pe, std::uint32_t peer) const { return {*this, pe, peer}; }

/// Every report without a failure.
::testing::AssertionResult all_good(Array<Report>& reports);
/// For messages.
std::string describe(const device::Outcome& outcome);

}  // namespace belfry::conformance
