#pragma once
/// \file
/// Whether a CPU thread on which device code depends still lives.

#include <cstdint>

#include "belfry/port/memory.hpp"
#include "belfry/port/scope.hpp"
#include "belfry/port/time.hpp"

namespace belfry::device {

/// What a heartbeat says once its thread has ended. No counting thread gets that far.
inline constexpr std::uint64_t kDeadBeat = ~std::uint64_t{0};

/// What was seen of a heartbeat last. Kept from one wait to the next, so that many short ones find a stall as
/// one long one does.
struct LastBeat {
  std::uint64_t beat = 0;
  std::uint64_t since_ns = 0;  ///< when this beat was seen first; 0: never looked
  bool is_lost = false;        ///< what the last look said
};

/// Watches a thread's heartbeat while somebody waits for it.
class Pulse {
 public:
  /// \param heartbeat of system scope: moves while the thread lives
  /// \param stall_ns a heartbeat that stands this long means a lost thread; 0: only kDeadBeat does
  /// \param last what was seen before
  BELFRY_FN Pulse(const std::uint64_t* heartbeat, std::uint64_t stall_ns, LastBeat last = {})
      : heartbeat_(heartbeat), stall_ns_(stall_ns), last_(last) {}

  /// To be asked once a turn. \return whether the thread has ended or stood still for too long
  BELFRY_FN bool is_lost() { return turns_++ % kTurnsBetweenLooks == 0 && look(); }

  /// The same, whatever the turn: for whoever gives up waiting.
  BELFRY_FN bool look() {
    const std::uint64_t beat = port::load<port::Scope::system>(heartbeat_);
    if (beat == kDeadBeat) return last_.is_lost = true;
    if (stall_ns_ == 0) return false;
    const std::uint64_t now = port::now_ns();
    if (last_.since_ns == 0 || beat != last_.beat) {
      last_ = {beat, now, false};
      return false;
    }
    return last_.is_lost = now - last_.since_ns >= stall_ns_;
  }

  BELFRY_FN LastBeat last() const { return last_; }

 private:
  static constexpr std::uint32_t kTurnsBetweenLooks = 64;
  const std::uint64_t* heartbeat_;
  std::uint64_t stall_ns_;
  LastBeat last_;
  std::uint32_t turns_ = 0;
};

}  // namespace belfry::device
