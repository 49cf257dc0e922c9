#include "host/tcp_socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <memory>
#include <utility>

#include "belfry/host/errors.hpp"

namespace belfry::host {

namespace {

struct FreeInfo {
  void operator()(addrinfo* info) const { freeaddrinfo(info); }
};
using InfoList = std::unique_ptr<addrinfo, FreeInfo>;

InfoList resolve(const TcpAddress& address, bool passive, int& status) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  status =
      getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), address.port.c_str(), &hints, &list);
  return InfoList(status == 0 ? list : nullptr);
}

/// Exchanges are small and wait for each other, so nothing may be held back; and a host that vanishes
/// without a word is noticed.
void tune(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle_seconds = 10;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
}

/// Connecting to a port of this host on which nobody listens can meet itself, when the kernel picks that
/// port as the source: TCP's simultaneous open.
bool met_itself(int fd) {
  sockaddr_storage mine{};
  sockaddr_storage theirs{};
  socklen_t mine_bytes = sizeof mine;
  socklen_t their_bytes = sizeof theirs;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &mine_bytes) != 0) return false;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &their_bytes) != 0) return false;
  return mine_bytes == their_bytes && std::memcmp(&mine, &theirs, mine_bytes) == 0;
}

/// \return 0 or the errno of the connection
int finish_connect(int fd, const addrinfo& info, Deadline deadline) {
  if (connect(fd, info.ai_addr, info.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_ready(fd, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  return error;
}

Descriptor listen_on(const addrinfo& info, int& code) {
  Descriptor fd(socket(info.ai_family, info.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info.ai_protocol));
  if (!fd) {
    code = errno;
    return {};
  }
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (info.ai_family == AF_INET6) {
    const int off = 0;  // "any" takes IPv4 too
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (bind(fd.get(), info.ai_addr, info.ai_addrlen) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    code = errno;
    return {};
  }
  return fd;
}

std::string taken_port(int fd) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof name;
  char port[NI_MAXSERV] = {};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&name), bytes, nullptr, 0, port, sizeof port, NI_NUMERICSERV) !=
          0) {
    return "0";
  }
  return port;
}

}  // namespace

void Descriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

TcpAddress TcpAddress::parse(std::string_view text) {
  const auto refuse = [&] {
    throw Error(ErrorKind::bad_argument, "\"" + std::string(text) + "\" is not an address",
                "It is HOST:PORT, or [IPV6]:PORT, with a port of 0..65535");
  };
  TcpAddress address;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    refuse();
  }
  unsigned number = 0;
  const auto [stop, status] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (status != std::errc() || stop != port.data() + port.size() || number > 65535) refuse();
  address.host = host;
  address.port = std::to_string(number);
  return address;
}

std::string TcpAddress::to_string() const {
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

TcpListener::TcpListener(const TcpAddress& address) : address_(address) {
  int status = 0;
  const InfoList list = resolve(address, true, status);
  if (list == nullptr) {
    throw Error(ErrorKind::bad_argument,
                "cannot resolve " + address.to_string() + ": " + gai_strerror(status),
                "Use a numeric address of this host, or :PORT for all of them");
  }
  // "Any" is there twice; the IPv6 one serves both families.
  std::vector<const addrinfo*> candidates;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) candidates.push_back(info);
  std::stable_sort(candidates.begin(), candidates.end(), [](const addrinfo* a, const addrinfo* b) {
    return a->ai_family == AF_INET6 && b->ai_family != AF_INET6;
  });
  int code = 0;
  for (const addrinfo* info : candidates) {
    if (Descriptor fd = listen_on(*info, code)) {
      address_.port = taken_port(fd.get());
      descriptor_ = fd.release();
      return;
    }
  }
  throw Error(ErrorKind::system, "cannot listen on " + address.to_string(),
              "Rank 0 must run on the host of that address, and the port be free (port 0 takes a free one)",
              code);
}

TcpListener::~TcpListener() { Descriptor(std::exchange(descriptor_, -1)).reset(); }

TcpListener::TcpListener(TcpListener&& other) noexcept
    : address_(std::move(other.address_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

TcpListener& TcpListener::operator=(TcpListener&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

int poll_timeout(Deadline deadline) {
  const Deadline now = Clock::now();
  if (deadline <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<int>(std::min<long long>(left, INT_MAX));
}

bool wait_ready(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, poll_timeout(deadline));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the read or write that follows reports it
    if (Clock::now() >= deadline) return false;
  }
}

Descriptor accept_connection(int listener) {
  Descriptor fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) tune(fd.get());
  return fd;
}

ConnectAttempt connect_once(const TcpAddress& address, Deadline deadline) {
  ConnectAttempt attempt;
  int status = 0;
  const InfoList list = resolve(address, false, status);
  if (list == nullptr) {
    attempt.problem = gai_strerror(status);
    attempt.bad_name = status != EAI_AGAIN;
    return attempt;
  }
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
    Descriptor fd(
        socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol));
    if (!fd) {
      attempt.problem = std::strerror(errno);
      continue;
    }
    int code = finish_connect(fd.get(), *info, deadline);
    if (code == 0 && met_itself(fd.get())) code = ECONNREFUSED;
    if (code == 0) {
      tune(fd.get());
      attempt.socket = std::move(fd);
      return attempt;
    }
    attempt.problem = std::strerror(code);
  }
  return attempt;
}

}  // namespace belfry::host
