#pragma once
/// \file
/// How a worker tells the device how far it is.

#include <cstdint>

#include "belfry/device/proxy/ring.hpp"
#include "belfry/port/memory.hpp"

namespace belfry::proxy {

/// Writes one ring's WorkerWords, wherever they lie.
class Counter {
 public:
  virtual ~Counter() = default;
  /// \param completed one past the last descriptor that is complete with all before it; never less than
  /// before
  virtual void completed(std::uint64_t completed) = 0;
  virtual void fault(std::uint64_t word, std::uint32_t qpn) = 0;
  virtual void heartbeat(std::uint64_t beat) = 0;
};

/// Words in memory that this CPU can store to. The other end is device/proxy/wait.hpp.
class MappedCounter final : public Counter {
 public:
  explicit MappedCounter(device::proxy::WorkerWords* words) : words_(words) {}

  void completed(std::uint64_t completed) override {
    port::store_release<port::Scope::system>(&words_->completed, completed);
  }
  void fault(std::uint64_t word, std::uint32_t qpn) override {
    port::store<port::Scope::system>(&words_->fault_qpn, std::uint64_t{qpn});
    port::store_release<port::Scope::system>(&words_->fault, word);
  }
  void heartbeat(std::uint64_t beat) override { port::store<port::Scope::system>(&words_->heartbeat, beat); }

 private:
  device::proxy::WorkerWords* words_;
};

}  // namespace belfry::proxy
