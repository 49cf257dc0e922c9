#pragma once
/// \file
/// Several PEs in this process, connected: PE 0 measures, the others are there to be written to.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "belfry/host/bootstrap.hpp"
#include "belfry/host/device_endpoint.hpp"

namespace belfry::bench {

class RunContext;

/// Calls `body` for every member of a group, each in a thread of its own, and waits for all. Throws what one
/// of them threw.
void on_each_rank(std::vector<std::unique_ptr<host::Bootstrap>>& members,
                  const std::function<void(std::size_t rank, host::Bootstrap& member)>& body);

class DeviceGroup {
 public:
  /// Opens the run's device and connects, windows and queues where the run's kernels reach them. Throws
  /// host::Error.
  DeviceGroup(const RunContext& run, int pes, const host::DeviceEndpointOptions& options);

  int size() const { return static_cast<int>(endpoints_.size()); }
  const host::DeviceEndpoint& pe(int rank) const { return *endpoints_[static_cast<std::size_t>(rank)]; }
  /// A PE's copy of window 0, where the host sees it.
  std::span<std::byte> window(int rank) const { return pe(rank).windows().memory(0).span(); }

  // The same wherever it lies, while nobody else uses it.

  /// \return a copy
  std::vector<std::byte> read_window(int rank) const;
  /// Lets `edit` change it: std::span<std::byte>.
  void edit_window(int rank, const std::function<void(std::span<std::byte>)>& edit) const;
  /// Zeroes the first `bytes` of any window.
  void clear_start(int rank, std::uint32_t window, std::size_t bytes) const;

 private:
  /// Of each PE's windows; null: host memory.
  std::vector<std::shared_ptr<host::QueueMemory>> memories_;
  std::vector<std::unique_ptr<host::Bootstrap>> members_;
  std::vector<std::unique_ptr<host::DeviceEndpoint>> endpoints_;
};

/// A machine that is short of cores keeps a software NIC waiting for longer than the usual 0.5 s of retries:
/// at least 4 s of them, for an experiment waits anyway, and a loss would show in its figures.
void be_patient(host::ConnectionParameters& connection);

/// The options that all experiments on device queues begin with: what the environment says, collapsed CQs as
/// device::DefaultPolicy wants them, and one window.
host::DeviceEndpointOptions device_options(std::size_t window_bytes);

}  // namespace belfry::bench
