#pragma once
/// \file
/// The CPU thread that forwards doorbells.

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "belfry/device/view.hpp"
#include "belfry/host/idle.hpp"
#include "host/doorbell_relay.hpp"

namespace belfry::host {

struct ForwarderThread {
  IdlePolicy idle;
  int cpu = -1;  ///< to run on; -1: wherever the system puts it
  std::string name = "belfry-bells";
};

/// Forwards until it is destroyed. An exception out of the bell ends it: its heartbeat then says so to device
/// code, which finds it within a few turns of waiting, and failure() has the cause.
class DoorbellForwarder {
 public:
  /// \param words reachable by device code, as the lines' words are; the caller keeps all of it for as long
  DoorbellForwarder(std::vector<DoorbellLine> lines, device::ForwarderWords* words,
                    std::unique_ptr<Bell> bell, const ForwarderThread& options);
  /// Looks once more, and ends.
  ~DoorbellForwarder();
  DoorbellForwarder(const DoorbellForwarder&) = delete;
  DoorbellForwarder& operator=(const DoorbellForwarder&) = delete;

  bool alive() const { return alive_.load(std::memory_order_acquire); }
  /// What ended it; null while alive, and after an orderly end.
  std::exception_ptr failure() const { return alive() ? nullptr : failure_; }

 private:
  void run();

  DoorbellRelay relay_;
  device::ForwarderWords* words_;
  std::unique_ptr<Bell> bell_;
  ForwarderThread options_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> alive_{true};
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace belfry::host
