#include "softnic/fabric/watch.hpp"

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace belfry::softnic {

Watch::Watch() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) {
    throw std::system_error(
        errno, std::system_category(),
        "softnic fabric: cannot create an epoll descriptor (if there are too many open files, "
        "raise 'ulimit -n')");
  }
}

int Watch::add(int fd, std::uint32_t events, WatchTag tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{static_cast<std::uint32_t>(tag.kind)} << 32 | tag.value;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

void Watch::remove(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::span<const WatchEvent> Watch::ready() {
  std::array<epoll_event, 64> raw;
  const int count = epoll_wait(epoll_.get(), raw.data(), static_cast<int>(raw.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = raw[static_cast<std::size_t>(i)];
    const std::uint64_t tag = event.data.u64;
    events_[static_cast<std::size_t>(i)] = {
        {static_cast<WatchKind>(tag >> 32), static_cast<std::uint32_t>(tag)}, event.events};
  }
  return {events_.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

bool Watch::wait(std::chrono::nanoseconds timeout) const {
  if (timeout < timeout.zero()) timeout = timeout.zero();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
  pollfd self{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
  // epoll_wait counts in milliseconds, and epoll_pwait2 is newer than some kernels.
  return ppoll(&self, 1, &limit, nullptr) > 0;
}

}  // namespace belfry::softnic
