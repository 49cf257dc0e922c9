#pragma once
/// \file
/// The CPU thread behind some rings.

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "host/polling_thread.hpp"
#include "proxy/ring_service.hpp"

namespace belfry::proxy {

/// Serves its rings until it is destroyed, and then finishes what has been posted, for at most a second. An
/// exception out of the submitter ends it: each of its rings then has the fault worker_lost, so that no
/// device thread waits for ever, and failure() has the cause.
class Worker {
 public:
  Worker(std::vector<std::unique_ptr<RingService>> rings, std::unique_ptr<Submitter> submitter,
         host::PollingOptions options);

  /// Whether it runs still.
  bool alive() const { return thread_.alive(); }
  /// What ended it; null while alive, and after an orderly end.
  std::exception_ptr failure() const { return thread_.failure(); }

 private:
  bool round();
  void finish();
  void tell_rings();
  bool idle() const;

  std::vector<std::unique_ptr<RingService>> rings_;
  std::unique_ptr<Submitter> submitter_;
  std::vector<RingService*> by_queue_;  ///< submitter's queue -> its ring
  std::uint64_t beat_ = 0;
  host::PollingThread thread_;
};

}  // namespace belfry::proxy
