#pragma once
/// \file
/// The thread that runs a NIC, and how it waits when there is nothing to do.

#include <atomic>
#include <thread>

#include "softnic/firmware/nic.hpp"

namespace belfry::softnic {

class Engine {
 public:
  /// Starts the thread. Throws std::system_error where the system gives none.
  explicit Engine(Nic& nic);
  /// Stops it and waits until it is gone.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

 private:
  void run();

  Nic& nic_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace belfry::softnic
