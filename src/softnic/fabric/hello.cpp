#include "softnic/fabric/hello.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace belfry::softnic {
namespace {

/// Takes the first descriptor of a message and closes any other: a peer can pack in more than asked.
OwnedFd take_descriptor(msghdr& message) {
  OwnedFd first;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      OwnedFd owned(fd);
      if (!first) first = std::move(owned);
    }
  }
  return first;
}

}  // namespace

int send_hello(int socket, const Hello& hello, int ring_fd) {
  iovec body{.iov_base = const_cast<Hello*>(&hello), .iov_len = sizeof hello};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &ring_fd, sizeof ring_fd);
  const ssize_t sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return errno;
  return sent == static_cast<ssize_t>(sizeof hello) ? 0 : EPROTO;
}

int receive_hello(int socket, Hello& hello, OwnedFd& ring_fd) {
  iovec body{.iov_base = &hello, .iov_len = sizeof hello};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? EAGAIN : ECONNRESET;
  ring_fd = take_descriptor(message);
  if (got == 0) return ECONNRESET;
  if (got != static_cast<ssize_t>(sizeof hello) || (message.msg_flags & MSG_TRUNC)) return EPROTO;
  if (hello.magic != kHelloMagic) return EPROTO;
  if (hello.version != kHelloVersion) return EPROTONOSUPPORT;
  return ring_fd ? 0 : EPROTO;
}

int send_wake(int socket) {
  const char byte = 1;
  if (send(socket, &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 0;
  return errno == EAGAIN ? 0 : errno;
}

SocketState drain_wakes(int socket) {
  // Bounded, so that a peer that sends without end does not keep us here; the rest waits its turn.
  for (int i = 0; i < 64; ++i) {
    char byte = 0;
    const ssize_t got = recv(socket, &byte, sizeof byte, MSG_DONTWAIT);
    if (got == 0) return SocketState::closed;
    if (got < 0) return errno == EAGAIN || errno == EINTR ? SocketState::open : SocketState::closed;
  }
  return SocketState::open;
}

}  // namespace belfry::softnic
