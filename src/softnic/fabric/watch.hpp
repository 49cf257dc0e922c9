#pragma once
/// \file
/// The descriptors that a port waits for, in one epoll set: a look costs what is ready, not how many
/// peers there are.

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "softnic/fabric/owned_fd.hpp"

namespace belfry::softnic {

/// What a descriptor in the set is.
enum class WatchKind : std::uint32_t { wake, listener, incoming, outgoing };

struct WatchTag {
  WatchKind kind;
  std::uint32_t value;  ///< the descriptor; the block number for `outgoing`
};

struct WatchEvent {
  WatchTag tag;
  std::uint32_t events;  ///< EPOLL bits
};

class Watch {
 public:
  /// Throws std::system_error.
  Watch();

  /// \return 0 or an errno
  int add(int fd, std::uint32_t events, WatchTag tag);

  /// Must come before the descriptor is closed: a copy in a child that is just being forked would
  /// keep it in the set.
  void remove(int fd);

  /// What is ready now, some of it if there is very much. Never blocks. Valid until the next call.
  std::span<const WatchEvent> ready();

  /// Sleeps until something is ready, a signal arrives or the time is over. \return whether something is
  bool wait(std::chrono::nanoseconds timeout) const;

 private:
  OwnedFd epoll_;
  std::array<WatchEvent, 64> events_;
};

}  // namespace belfry::softnic
