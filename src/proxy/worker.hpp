#pragma once
/// \file
/// The CPU thread behind some rings.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "belfry/proxy/idle.hpp"
#include "proxy/ring_service.hpp"

namespace belfry::proxy {

struct WorkerOptions {
  IdlePolicy idle;
  int cpu = -1;  ///< to run on; -1: wherever the system puts it
  std::string name = "belfry-proxy";
};

/// Serves its rings until it is destroyed. An exception out of the submitter ends it: each of its rings then
/// has the fault worker_lost, so that no device thread waits for ever, and failure() has the cause.
class Worker {
 public:
  Worker(std::vector<std::unique_ptr<RingService>> rings, std::unique_ptr<Submitter> submitter,
         const WorkerOptions& options);
  /// Finishes what has been posted, for at most a second, and ends.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Whether it runs still.
  bool alive() const { return alive_.load(std::memory_order_acquire); }
  /// What ended it; null while alive, and after an orderly end.
  std::exception_ptr failure() const { return alive() ? nullptr : failure_; }

 private:
  void run();
  bool round();
  bool idle() const;

  std::vector<std::unique_ptr<RingService>> rings_;
  std::unique_ptr<Submitter> submitter_;
  WorkerOptions options_;
  std::vector<RingService*> by_queue_;  ///< submitter's queue -> its ring
  std::atomic<bool> stop_{false};
  std::atomic<bool> alive_{true};
  std::exception_ptr failure_;
  std::uint64_t beat_ = 0;
  std::thread thread_;
};

}  // namespace belfry::proxy
