#pragma once
/// \file
/// What goes through the socket between two ports, from the sender to the receiver only: first a
/// Hello with the ring's memfd (SCM_RIGHTS), then now and then one byte that wakes the receiver.

#include <cstddef>
#include <cstdint>

#include "softnic/fabric/owned_fd.hpp"

namespace belfry::softnic {

inline constexpr std::uint64_t kHelloMagic = 0x31796d6172666c62u;  // "blframy1"
inline constexpr std::uint32_t kHelloVersion = 1;

/// Host byte order: both ends are on one host.
struct Hello {
  std::uint64_t magic = kHelloMagic;
  std::uint32_t version = kHelloVersion;
  std::uint32_t ring_bytes = 0;
  std::uint64_t sender = 0;  ///< a number of the sending port's own, for messages
};
static_assert(offsetof(Hello, version) == 8);
static_assert(offsetof(Hello, ring_bytes) == 12);
static_assert(offsetof(Hello, sender) == 16);
static_assert(sizeof(Hello) == 24);

/// \return 0 or an errno; never blocks
int send_hello(int socket, const Hello& hello, int ring_fd);

/// Takes the hello from the socket and checks it, but not the ring's memory.
/// \return 0; EAGAIN: not there yet; ECONNRESET: the peer is gone; EPROTO: not a hello;
///         EPROTONOSUPPORT: another version (then `hello.version` says which)
int receive_hello(int socket, Hello& hello, OwnedFd& ring_fd);

/// Wakes the receiver; never blocks. 0 also where earlier wake-ups still wait to be read; else errno.
int send_wake(int socket);

enum class SocketState : std::uint8_t { open, closed };

/// Throws away the wake-ups that have arrived.
SocketState drain_wakes(int socket);

}  // namespace belfry::softnic
