#pragma once
/// \file
/// How a worker tells the device how far it is.

#include <cstdint>
#include <functional>

#include "belfry/device/proxy/ring.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"
#include "belfry/port/time.hpp"

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
    if (port::kept(port::Step::proxy_release_completion)) {
      port::store_release<port::Scope::system>(&words_->completed, completed);
    } else {
      port::store<port::Scope::system>(&words_->completed, completed);
    }
  }
  void fault(std::uint64_t word, std::uint32_t qpn) override {
    port::store<port::Scope::system>(&words_->fault_qpn, std::uint64_t{qpn});
    if (port::kept(port::Step::proxy_release_fault)) {
      port::store_release<port::Scope::system>(&words_->fault, word);
    } else {
      port::store<port::Scope::system>(&words_->fault, word);
    }
  }
  void heartbeat(std::uint64_t beat) override { port::store<port::Scope::system>(&words_->heartbeat, beat); }

 private:
  device::proxy::WorkerWords* words_;
};

/// Lets a heartbeat through often enough for whoever watches it, where each costs a trip over PCIe.
class BeatPace {
 public:
  explicit BeatPace(std::uint64_t interval_ns) : interval_ns_(interval_ns) {}

  bool is_due() {
    if (turns_++ % kTurnsBetweenLooks != 0) return false;
    const std::uint64_t now = port::now_ns();
    if (now - last_ns_ < interval_ns_) return false;
    last_ns_ = now;
    return true;
  }

 private:
  static constexpr std::uint32_t kTurnsBetweenLooks = 16;
  std::uint64_t interval_ns_;
  std::uint64_t last_ns_ = 0;
  std::uint32_t turns_ = 0;
};

/// Words in memory of a GPU, through a mapping whose stores are combined: each is pushed out at once, as to a
/// doorbell register.
class CombinedCounter final : public Counter {
 public:
  CombinedCounter(device::proxy::WorkerWords* words, std::uint64_t beat_ns) : words_(words), pace_(beat_ns) {}

  void completed(std::uint64_t completed) override { port::store_doorbell(&words_->completed, completed); }
  void fault(std::uint64_t word, std::uint32_t qpn) override {
    port::store_doorbell(&words_->fault_qpn, std::uint64_t{qpn});
    port::store_doorbell(&words_->fault, word);
  }
  void heartbeat(std::uint64_t beat) override {
    if (pace_.is_due()) port::store_doorbell(&words_->heartbeat, beat);
  }

 private:
  device::proxy::WorkerWords* words_;
  BeatPace pace_;
};

/// Words that the NIC writes. What does not get through now is written later: a count says all that the ones
/// before it said.
class NicCounter final : public Counter {
 public:
  /// Has the NIC write 8 B at an offset of the words, after all that it was given before. False where there
  /// is no room now.
  using Write = std::function<bool(std::size_t offset, std::uint64_t value)>;

  NicCounter(Write write, std::uint64_t first, std::uint64_t beat_ns)
      : write_(std::move(write)), completed_(first), written_(first), pace_(beat_ns) {}

  void completed(std::uint64_t completed) override {
    completed_ = completed;
    catch_up();
  }
  void fault(std::uint64_t word, std::uint32_t qpn) override {
    fault_ = word;
    fault_qpn_ = qpn;
    // It may be the last that the worker does, so it waits for room a while.
    for (port::Patience patience(port::Timeout::milliseconds(100)); !catch_up() && !patience.is_over();)
      port::pause_lane();
  }
  void heartbeat(std::uint64_t beat) override {
    if (catch_up() && pace_.is_due()) write_(offsetof(Words, heartbeat), beat);
  }

 private:
  using Words = device::proxy::WorkerWords;

  /// Writes what is owed, in order. True once nothing is.
  bool catch_up() {
    if (written_ != completed_) {
      if (!write_(offsetof(Words, completed), completed_)) return false;
      written_ = completed_;
    }
    if (fault_ == 0) return true;
    if (!qpn_is_written_ && !(qpn_is_written_ = write_(offsetof(Words, fault_qpn), fault_qpn_))) return false;
    if (!write_(offsetof(Words, fault), fault_)) return false;
    fault_ = 0;
    return true;
  }

  Write write_;
  std::uint64_t completed_;
  std::uint64_t written_;
  std::uint64_t fault_ = 0;  ///< owed
  std::uint64_t fault_qpn_ = 0;
  bool qpn_is_written_ = false;
  BeatPace pace_;
};

}  // namespace belfry::proxy
