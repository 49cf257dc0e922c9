#pragma once
/// \file
/// A CPU thread that serves device code: it polls, rests as it was told while nothing comes, and says when it
/// has ended.

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "belfry/host/idle.hpp"

namespace belfry::host {

struct PollingOptions {
  IdlePolicy idle = {};
  int cpu = -1;           ///< to run on; -1: wherever the system puts it
  std::string name = {};  ///< as the system shows it
};

/// What such a thread does; all of it is called there.
struct PollingDuties {
  std::function<bool()> round;             ///< one look at everything. \return whether there was work
  std::function<void()> finish;            ///< before an orderly end
  std::function<void(bool failed)> ended;  ///< last of all; must not throw. failed: something else has thrown
};

/// Polls until it is destroyed. An exception out of its duties ends it, and failure() has it. Whoever has one
/// declares it after all that its duties use.
class PollingThread {
 public:
  PollingThread(const PollingOptions& options, PollingDuties duties);
  ~PollingThread();
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

  /// Whether it runs still.
  bool alive() const { return alive_.load(std::memory_order_acquire); }
  /// What ended it; null while alive, and after an orderly end.
  std::exception_ptr failure() const { return alive() ? nullptr : failure_; }

 private:
  void run(const PollingOptions& options, const PollingDuties& duties);

  std::atomic<bool> stop_{false};
  std::atomic<bool> alive_{true};
  std::exception_ptr failure_;
  std::thread thread_;
};

/// Throws Error (bad_argument) for a thread that would be taken for lost while it sleeps by its policy.
/// \param stall a heartbeat that stands this long means a lost thread; 0: never
/// \param who   "worker"
void check_rest(const IdlePolicy& idle, std::chrono::nanoseconds stall, const std::string& who);

}  // namespace belfry::host
