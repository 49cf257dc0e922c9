#pragma once
/// \file
/// How a worker tells the device how far it is.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "belfry/device/fault.hpp"
#include "belfry/device/proxy/ring.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"
#include "belfry/port/time.hpp"

namespace belfry::proxy {

/// Why a ring has failed, and how far that reaches.
struct RingFault {
  device::Fault::Kind kind = device::Fault::Kind::none;
  std::uint64_t index = 0;  ///< the descriptor that failed
  wire::Syndrome syndrome = wire::Syndrome::none;
  std::uint8_t vendor = 0;
  std::uint16_t peer = device::kNoPeer;  ///< whose queue failed
  std::uint32_t qpn = 0;
  std::uint64_t dropped_from = 0;  ///< descriptors from here on were not posted

  std::uint64_t word() const { return device::fault_word(kind, index, syndrome, vendor); }
  std::uint64_t queue() const { return device::proxy::fault_queue(qpn, peer); }
};

/// Writes one ring's WorkerWords, wherever they lie.
class Counter {
 public:
  virtual ~Counter() = default;
  /// \param completed one past the last descriptor that is complete with all before it; never less than
  /// before
  virtual void completed(std::uint64_t completed) = 0;
  virtual void fault(const RingFault& fault) = 0;
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
  void fault(const RingFault& fault) override {
    port::store<port::Scope::system>(&words_->fault_index, fault.index);
    port::store<port::Scope::system>(&words_->fault_queue, fault.queue());
    port::store<port::Scope::system>(&words_->dropped_from, fault.dropped_from);
    if (port::kept(port::Step::proxy_release_fault)) {
      port::store_release<port::Scope::system>(&words_->fault, fault.word());
    } else {
      port::store<port::Scope::system>(&words_->fault, fault.word());
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

  void completed(std::uint64_t completed) override {
    push(&words_->completed, completed, port::Step::proxy_release_completion);
  }
  void fault(const RingFault& fault) override {
    port::store_doorbell(&words_->fault_index, fault.index);
    port::store_doorbell(&words_->fault_queue, fault.queue());
    port::store_doorbell(&words_->dropped_from, fault.dropped_from);
    push(&words_->fault, fault.word(), port::Step::proxy_release_fault);
  }
  void heartbeat(std::uint64_t beat) override {
    if (pace_.is_due()) port::store_doorbell(&words_->heartbeat, beat);
  }

 private:
  static void push(std::uint64_t* word, std::uint64_t value, port::Step step) {
    if (port::kept(step)) {
      port::store_doorbell(word, value);
    } else {
      port::store<port::Scope::system>(word, value);
    }
  }

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
  void fault(const RingFault& fault) override {
    owed_ = {{{offsetof(Words, fault_index), fault.index},
              {offsetof(Words, fault_queue), fault.queue()},
              {offsetof(Words, dropped_from), fault.dropped_from},
              {offsetof(Words, fault), fault.word()}}};
    if (!port::kept(port::Step::proxy_release_fault)) std::swap(owed_.front(), owed_.back());
    paid_ = 0;
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
    for (; paid_ < owed_.size(); ++paid_)
      if (!write_(owed_[paid_].first, owed_[paid_].second)) return false;
    return true;
  }

  Write write_;
  std::uint64_t completed_;
  std::uint64_t written_;
  std::array<std::pair<std::size_t, std::uint64_t>, 4> owed_{};  ///< words of a fault, the last one last
  std::size_t paid_ = owed_.size();
  BeatPace pace_;
};

}  // namespace belfry::proxy
