#include "softnic/fabric/incoming.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "softnic/fabric/block_names.hpp"
#include "softnic/fabric/hello.hpp"

namespace belfry::softnic {
namespace {

OwnedFd make_spare() { return OwnedFd(eventfd(0, EFD_CLOEXEC)); }

}  // namespace

Incoming::Incoming(Watch& watch, SharedFabricCounters& counters)
    : watch_(watch), counters_(counters), spare_(make_spare()) {}

Incoming::~Incoming() {
  for (const auto& channel : channels_) close_socket(*channel);
  for (const OwnedFd& listener : listeners_) watch_.remove(listener.get());
}

int Incoming::add_listener(OwnedFd listener) {
  const auto tag = WatchTag{WatchKind::listener, static_cast<std::uint32_t>(listener.get())};
  if (const int error = watch_.add(listener.get(), EPOLLIN, tag)) return error;
  listeners_.push_back(std::move(listener));
  return 0;
}

std::size_t Incoming::deliver(FrameReceiver& receiver, std::size_t budget) {
  const std::size_t count = channels_.size();
  if (count == 0) return 0;
  std::size_t done = 0;
  bool finished = false;
  std::size_t at = first_ < count ? first_ : 0;
  first_ = at + 1;
  for (std::size_t i = 0; i < count && done < budget; ++i) {
    Channel& channel = *channels_[at];
    if (++at == count) at = 0;
    if (channel.ring) {
      done += channel.ring->deliver(receiver, budget - done);
      finished |= channel.ring->broken();
    }
    finished |= !channel.socket;
  }
  if (finished) [[unlikely]]
    reap();
  return done;
}

bool Incoming::announce_sleep() {
  bool quiet = true;
  for (const auto& channel : channels_) {
    if (channel->ring) quiet &= channel->ring->announce_sleep();
  }
  return quiet;
}

void Incoming::announce_awake() {
  for (const auto& channel : channels_) {
    if (channel->ring) channel->ring->announce_awake();
  }
}

void Incoming::accept_peers(int listener) {
  for (;;) {
    OwnedFd socket(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EMFILE || errno == ENFILE) turn_one_away(listener);
      return;
    }
    const PeerCredentials peer = peer_credentials(socket.get());
    if (!peer.same_user) {
      ++counters_.refused;
      note_refused_("a process of another user (pid " + std::to_string(peer.pid) +
                    ") tried to join the fabric; it was turned away");
      continue;
    }
    const auto tag = WatchTag{WatchKind::incoming, static_cast<std::uint32_t>(socket.get())};
    if (watch_.add(socket.get(), EPOLLIN | EPOLLRDHUP, tag) != 0) {
      ++counters_.refused;
      continue;
    }
    auto channel = std::make_unique<Channel>();
    channel->socket = std::move(socket);
    channel->pid = peer.pid;
    take_hello(*channel);  // as a rule it is there already
    channels_.push_back(std::move(channel));
  }
}

/// With every descriptor in use, accept() fails and the peer stays in the queue, so the listener
/// would be ready for ever. The peer learns of it instead and tries again later.
void Incoming::turn_one_away(int listener) {
  note_descriptors_("no file descriptor is left for a new peer of the fabric; raise 'ulimit -n'");
  ++counters_.refused;
  spare_.reset();
  OwnedFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)).reset();
  spare_ = make_spare();
}

void Incoming::socket_ready(int socket) {
  const auto found = std::find_if(channels_.begin(), channels_.end(),
                                  [&](const auto& channel) { return channel->socket.get() == socket; });
  if (found == channels_.end()) return;
  Channel& channel = **found;
  if (!channel.ring) take_hello(channel);
  if (!channel.ring || !channel.socket) return;
  if (drain_wakes(socket) == SocketState::closed) {
    ++counters_.hangups;
    close_socket(channel);
  }
}

void Incoming::take_hello(Channel& channel) {
  Hello hello;
  OwnedFd fd;
  switch (const int error = receive_hello(channel.socket.get(), hello, fd)) {
    case 0:
      break;
    case EAGAIN:
      return;
    case ECONNRESET:
      ++counters_.hangups;
      channel.over = true;
      return close_socket(channel);
    case EPROTONOSUPPORT:
      return refuse(channel, "its fabric protocol is version " + std::to_string(hello.version) +
                                 ", ours is " + std::to_string(kHelloVersion) +
                                 "; run the same belfry in every process");
    default:
      return refuse(channel, error == EPROTO ? "its hello is not one of the fabric" : "no hello can be read");
  }
  if (check_ring_fd(fd.get(), hello.ring_bytes) != 0) {
    return refuse(channel, "what it sent is not a sealed ring");
  }
  auto mapping = RingMapping::map(fd.get(), hello.ring_bytes, RingMapping::Side::consumer);
  if (!mapping) return refuse(channel, "its ring cannot be mapped");
  if (check_ring_control(*mapping) != 0) return refuse(channel, "its ring has a wrong header");
  channel.ring.emplace(std::move(*mapping));
  ++counters_.accepts;
}

void Incoming::refuse(Channel& channel, const std::string& why) {
  ++counters_.refused;
  note_refused_("process " + std::to_string(channel.pid) + " was turned away from the fabric: " + why);
  channel.over = true;
  close_socket(channel);
}

void Incoming::close_socket(Channel& channel) {
  if (!channel.socket) return;
  watch_.remove(channel.socket.get());
  channel.socket.reset();
}

void Incoming::reap() {
  std::erase_if(channels_, [this](const auto& channel) {
    if (channel->ring && channel->ring->broken()) {
      ++counters_.corrupt;
      note_corrupt_("process " + std::to_string(channel->pid) +
                    " wrote nonsense into its ring; its frames are no longer taken");
      channel->over = true;
    }
    if (!channel->finished()) return false;
    close_socket(*channel);
    return true;
  });
}

}  // namespace belfry::softnic
