#pragma once
/// \file
/// A file descriptor of the fabric. It is closed on exec, and also in a child that fork() makes:
/// a child that lives on would otherwise hold its parent's QPN blocks and hide the parent's death
/// from the peers.

#include <utility>

namespace belfry::softnic {

class OwnedFd {
 public:
  OwnedFd() = default;
  /// Takes `fd` over; a negative one owns nothing.
  explicit OwnedFd(int fd);
  ~OwnedFd() { reset(); }
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      generation_ = other.generation_;
    }
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  /// Closes it, unless this process is a fork's child in which it is closed already.
  void reset();

 private:
  int fd_ = -1;
  unsigned generation_ = 0;
};

}  // namespace belfry::softnic
