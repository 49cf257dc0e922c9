#pragma once
/// \file
/// Sockets with owners and deadlines.

#include <optional>
#include <string>

#include "belfry/host/deadline.hpp"
#include "belfry/host/tcp_bootstrap.hpp"

namespace belfry::host {

/// Owns a descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset();

 private:
  int fd_ = -1;
};

/// Milliseconds until `deadline` as poll(2) takes them: rounded up, 0 if it has passed.
int poll_timeout(Deadline deadline);

/// Waits until `fd` is ready for `events`. \return false if the deadline passed first
bool wait_ready(int fd, short events, Deadline deadline);

/// The next connection of a listening socket, ready for a channel; empty if none waits.
Descriptor accept_connection(int listener);

/// One try to connect to any address of the name. \return empty and why not
struct ConnectAttempt {
  Descriptor socket;
  std::string problem;
  bool bad_name = false;  ///< the host's name does not resolve, for good
};
ConnectAttempt connect_once(const TcpAddress& address, Deadline deadline);

}  // namespace belfry::host
