#pragma once
/// \file
/// Where a send queue's indices live while a thread uses it: in its registers, if the queue is its own, or in
/// memory, if others use it too. Both kinds answer to the same names.

#include <cstdint>

#include "belfry/device/fault.hpp"
#include "belfry/device/policy.hpp"
#include "belfry/device/view.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"

namespace belfry::device::gda {

/// Indices of a queue that one thread owns for a while: loaded once, written back at the end.
class OwnedIndices {
 public:
  /// A queue that does not exist has no state, and its indices are never used.
  BELFRY_FN explicit OwnedIndices(const SendQueue& queue) : state_(queue.state) {
    if (state_ == nullptr) return;
    producer_ = state_->published;
    goal_ = state_->goal;
    signaled_goal_ = state_->signaled_goal;
    consumer_ = state_->consumer;
    cq_consumer_ = state_->cq_consumer;
    fault_ = state_->fault;
  }

  // What was seen of completions is written back only with what was posted: a lane that only looks at a queue
  // must not write its older producer over the owner's. The queue's next user finds the same CQEs again.
  BELFRY_FN std::uint64_t consumer() const { return consumer_; }
  BELFRY_FN void raise_consumer(std::uint64_t to) { consumer_ = to; }
  BELFRY_FN std::uint64_t cq_consumer() const { return cq_consumer_; }
  /// \return whether the caller is the one who took the entry
  BELFRY_FN bool take_entry(std::uint64_t entry) {
    cq_consumer_ = entry + 1;
    return true;
  }
  BELFRY_FN std::uint64_t fault() const { return fault_; }
  BELFRY_FN void acquire_fault() const {}
  /// In memory at once, for others may read why this queue failed; behind the consumer, which they need to
  /// widen its index (mutant: release_fault). \return whether it told something new
  BELFRY_FN bool latch(std::uint64_t word) {
    if (!fault_replaces(fault_, word)) return false;
    fault_ = word;
    port::store<port::Scope::system>(&state_->consumer, consumer_);
    if (port::kept(port::Step::release_fault)) {
      port::store_release<port::Scope::system>(&state_->fault, word);
    } else {
      port::store<port::Scope::system>(&state_->fault, word);
    }
    return true;
  }

  BELFRY_FN std::uint64_t producer() const { return producer_; }
  /// Slots before it are free. The consumer knows a WQE's first block only, so the last WQE's other blocks
  /// are known to be free only once all is complete.
  BELFRY_FN std::uint64_t retired() const { return consumer_ >= goal_ ? producer_ : consumer_; }
  BELFRY_FN std::uint64_t goal() const { return goal_; }
  BELFRY_FN std::uint64_t signaled_goal() const { return signaled_goal_; }
  BELFRY_FN bool owes_doorbell() const { return goal_ != signaled_goal_; }
  BELFRY_FN void publish(std::uint64_t first, std::uint64_t end, bool signaled) {
    producer_ = end;
    goal_ = first + 1;
    if (signaled) signaled_goal_ = first + 1;
    changed_ = true;
  }

  /// For the queue's next user, who comes after this one by whatever orders them (a kernel's end, a barrier).
  BELFRY_FN void write_back() {
    if (!changed_) return;
    state_->reserved = state_->published = producer_;
    state_->goal = goal_;
    state_->signaled_goal = signaled_goal_;
    state_->consumer = consumer_;
    state_->cq_consumer = cq_consumer_;
    changed_ = false;
  }

 private:
  QueueState* state_;
  std::uint64_t producer_ = 0, goal_ = 0, signaled_goal_ = 0, consumer_ = 0, cq_consumer_ = 0, fault_ = 0;
  bool changed_ = false;
};

/// Indices of a queue that threads within `scope` share. What was seen of them last is kept: each grows, so
/// an older value is a safe one, and on a GPU a look at memory costs more than building a WQE does.
template <port::Scope scope>
class SharedIndices {
 public:
  BELFRY_FN explicit SharedIndices(const SendQueue& queue) : state_(queue.state) {}

  BELFRY_FN std::uint64_t consumer() const { return port::load<scope>(&state_->consumer); }
  /// Blocks before it are written; what their writers stored comes before what follows here. That a slot's
  /// last WQE is complete says nothing, by the memory model, of the stores of the thread that wrote it: ours
  /// could end up in front of them. So that thread must have published, too, and is acquired from here
  /// (mutant: acquire_published).
  BELFRY_FN std::uint64_t published() const {
    if (!port::kept(port::Step::acquire_published)) return port::load<scope>(&state_->published);
    return port::load_acquire<scope>(&state_->published);
  }
  /// Slots before it are free, as OwnedIndices::retired(), if `reserved` is still the end of what is reserved
  /// (who reserves finds out).
  BELFRY_FN std::uint64_t retired(std::uint64_t reserved, std::uint64_t published) const {
    // All that is reserved is published, and then its goal is there too.
    if (published != reserved) return consumer();
    const std::uint64_t goal = port::load<scope>(&state_->goal);
    const std::uint64_t now = consumer();
    return now >= goal ? reserved : now;
  }

  /// published(), as this thread knows it from its last look or its own last turn.
  BELFRY_FN std::uint64_t known_published() const { return known_published_; }
  BELFRY_FN void know_published(std::uint64_t published) { known_published_ = published; }
  /// Slots of blocks before it were free at the last look.
  BELFRY_FN std::uint64_t known_limit() const { return known_limit_; }
  /// \param size blocks of the queue
  BELFRY_FN void look(std::uint64_t size) {
    known_published_ = published();
    const std::uint64_t complete = consumer();
    known_limit_ = (complete < known_published_ ? complete : known_published_) + size;
  }

  // A maximum, for pollers overtake each other; 64 bits do not wrap.
  BELFRY_FN void raise_consumer(std::uint64_t to) { port::fetch_max<scope>(&state_->consumer, to); }
  BELFRY_FN std::uint64_t cq_consumer() const { return port::load<scope>(&state_->cq_consumer); }
  BELFRY_FN bool take_entry(std::uint64_t entry) {
    return port::compare_exchange<scope>(&state_->cq_consumer, entry, entry + 1) == entry;
  }
  BELFRY_FN std::uint64_t fault() const { return port::load<scope>(&state_->fault); }
  /// After a fault was seen: the consumer is what whoever latched it has made it, or more.
  /// (mutants: acquire_fault, release_fault)
  BELFRY_FN void acquire_fault() const {
    if (port::kept(port::Step::acquire_fault)) port::fence<scope>();
  }
  BELFRY_FN bool latch(std::uint64_t word) {
    std::uint64_t seen = fault();
    while (fault_replaces(seen, word)) {
      const std::uint64_t before =
          port::kept(port::Step::release_fault)
              ? port::compare_exchange<scope, port::Order::release>(&state_->fault, seen, word)
              : port::compare_exchange<scope>(&state_->fault, seen, word);
      if (before == seen) return true;
      seen = before;
    }
    return false;
  }
  /// Whether WQEs are published that nobody has announced.
  BELFRY_FN bool owes_doorbell() const {
    return port::load<scope>(&state_->goal) != port::load<scope>(&state_->signaled_goal);
  }
  BELFRY_FN void write_back() {}
  BELFRY_FN QueueState* state() const { return state_; }

 private:
  QueueState* state_;
  std::uint64_t known_published_ = 0, known_limit_ = 0;
};

template <class Policy>
using IndicesOf = std::conditional_t<Policy::sharing == Sharing::exclusive, OwnedIndices,
                                     SharedIndices<sharing_scope(Policy::sharing)>>;

}  // namespace belfry::device::gda
