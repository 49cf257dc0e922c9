#pragma once
/// \file
/// Doorbells on their way through a CPU: device code rings words in host memory, which are passed on to the
/// NIC's registers.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "belfry/port/memory.hpp"
#include "belfry/port/step.hpp"

namespace belfry::host {

/// Where forwarded doorbells go: the seam at which another can stand in the NIC's place (a test, the
/// weak-memory checker).
class Bell {
 public:
  virtual ~Bell() = default;
  virtual void ring(std::uint64_t* doorbell, std::uint64_t value) = 0;
};

class RegisterBell final : public Bell {
 public:
  void ring(std::uint64_t* doorbell, std::uint64_t value) override { port::store_doorbell(doorbell, value); }
};

/// One queue's way. Queues may share a register: they are rung one after another.
struct DoorbellLine {
  const std::uint64_t* word = nullptr;  ///< SendQueue::doorbell; 0 until it is rung first
  std::uint64_t* doorbell = nullptr;    ///< the NIC's register
};

/// The other end of a word is device/gda/ring.hpp, which stores the same 8 B there that it would store to the
/// register.
///
/// A doorbell that a newer one overwrites before we look is not lost: a doorbell's index says how far the
/// queue is filled, so the newer one tells of the older one's WQEs too. And a newer one is never mistaken for
/// the one seen last: indices have 16 bits, a queue holds 32768 blocks at most, and the NIC frees none of
/// which it has not heard through us, so that between two looks the index moves by less than 65536.
class DoorbellRelay {
 public:
  explicit DoorbellRelay(std::vector<DoorbellLine> lines) : lines_(std::move(lines)), seen_(lines_.size()) {}

  /// Looks at every word once, and rings for those that have changed. The load acquires what device code
  /// released with its doorbell (WQEs, record); the bell orders all of it before the NIC hears (mutant:
  /// forward_acquire). \return how many have changed
  std::size_t relay(Bell& bell) {
    std::size_t news = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::uint64_t value = load_word(lines_[i].word);
      if (value == seen_[i]) continue;
      bell.ring(lines_[i].doorbell, value);
      seen_[i] = value;
      ++news;
    }
    return news;
  }

 private:
  static std::uint64_t load_word(const std::uint64_t* word) {
    if (!port::kept(port::Step::forward_acquire)) return port::load<port::Scope::system>(word);
    return port::load_acquire<port::Scope::system>(word);
  }

  std::vector<DoorbellLine> lines_;
  std::vector<std::uint64_t> seen_;
};

}  // namespace belfry::host
