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

/// Watches a thread's heartbeat while somebody waits for it.
class Pulse {
 public:
  /// \param heartbeat of system scope: moves while the thread lives
  /// \param stall_ns a heartbeat that stands this long means a lost thread; 0: only kDeadBeat does
  BELFRY_FN Pulse(const std::uint64_t* heartbeat, std::uint64_t stall_ns)
      : heartbeat_(heartbeat), stall_ns_(stall_ns) {}

  /// To be asked once a turn. \return whether the thread has ended or stood still for too long
  BELFRY_FN bool is_lost() {
    if (turns_++ % kTurnsBetweenLooks != 0) return false;
    const std::uint64_t beat = port::load<port::Scope::system>(heartbeat_);
    if (beat == kDeadBeat) return true;
    if (stall_ns_ == 0) return false;
    const std::uint64_t now = port::now_ns();
    if (since_ns_ == 0 || beat != beat_) {
      beat_ = beat;
      since_ns_ = now;
      return false;
    }
    return now - since_ns_ >= stall_ns_;
  }

 private:
  static constexpr std::uint32_t kTurnsBetweenLooks = 64;
  const std::uint64_t* heartbeat_;
  std::uint64_t stall_ns_;
  std::uint64_t beat_ = 0;
  std::uint64_t since_ns_ = 0;
  std::uint32_t turns_ = 0;
};

}  // namespace belfry::device
