#include "softnic/fabric/outgoing.hpp"

#include <cerrno>
#include <system_error>

#include "softnic/fabric/hello.hpp"

namespace belfry::softnic {

Outgoing::Outgoing(Watch& watch, const BlockNames& names, SharedFabricCounters& counters,
                   std::uint64_t sender, std::uint32_t ring_bytes, std::chrono::nanoseconds retry)
    : watch_(watch),
      names_(names),
      counters_(counters),
      sender_(sender),
      ring_bytes_(ring_bytes),
      retry_(retry),
      peers_(kQpnBlocks) {}

Outgoing::~Outgoing() {
  for (Peer& peer : peers_) close_channel(peer);
}

SendOutcome Outgoing::send(std::uint32_t block, const FrameHeader& header, std::span<const FramePart> parts) {
  Peer& peer = peers_[block];
  if (!peer.channel) [[unlikely]] {
    const SendOutcome outcome = reach(block, peer);
    if (outcome != SendOutcome::sent) return outcome;
  }
  Channel& channel = *peer.channel;
  switch (channel.ring.put(header, parts)) {
    case PutOutcome::full:
      return SendOutcome::full;
    case PutOutcome::broken:
      ++counters_.corrupt;
      note_corrupt_("the owner of QPN block " + std::to_string(block) +
                    " wrote nonsense into its ring; the channel to it is closed");
      close_channel(peer);
      return SendOutcome::unreachable;
    case PutOutcome::done:
      break;
  }
  if (channel.ring.claim_signal()) [[unlikely]] {
    ++counters_.wakes_sent;
    // Gone without our having noticed: then so is the frame, as on a wire.
    if (send_wake(channel.socket.get()) != 0) hung_up(block);
  }
  return SendOutcome::sent;
}

/// Opens the channel if it is time to. `sent` means that it is open.
SendOutcome Outgoing::reach(std::uint32_t block, Peer& peer) {
  const Clock::time_point now = Clock::now();
  if (now >= peer.not_before) {
    peer.not_before = now + retry_;
    const int error = open_channel(block, peer);
    if (error == 0) {
      ++counters_.connects;
      return SendOutcome::sent;
    }
    peer.busy = error == EAGAIN;
    if (error != EAGAIN && error != ECONNREFUSED && error != EACCES && error != EPIPE &&
        error != ECONNRESET) {
      note_resources_("cannot open a channel of the fabric: " + std::system_category().message(error) +
                      (error == EMFILE || error == ENFILE ? "; raise 'ulimit -n'" : ""));
    }
  }
  return peer.busy ? SendOutcome::full : SendOutcome::unreachable;
}

/// The peer need not answer: frames may be in the ring before it has looked at the connection.
int Outgoing::open_channel(std::uint32_t block, Peer& peer) {
  auto socket = names_.connect(block);
  if (!socket) return socket.error();
  const auto fd = create_ring(ring_bytes_);
  if (!fd) return fd.error();
  auto mapping = RingMapping::map((*fd).get(), ring_bytes_, RingMapping::Side::producer);
  if (!mapping) return mapping.error();
  Hello hello;
  hello.ring_bytes = ring_bytes_;
  hello.sender = sender_;
  if (const int error = send_hello((*socket).get(), hello, (*fd).get())) return error;
  // Nothing is read from this socket; it tells of the peer's end.
  if (const int error = watch_.add((*socket).get(), EPOLLRDHUP, {WatchKind::outgoing, block})) return error;
  peer.channel = std::make_unique<Channel>(Channel{std::move(*socket), RingProducer(std::move(*mapping))});
  peer.busy = false;
  return 0;
}

void Outgoing::hung_up(std::uint32_t block) {
  Peer& peer = peers_[block];
  if (!peer.channel) return;
  ++counters_.hangups;
  close_channel(peer);
}

void Outgoing::close_channel(Peer& peer) {
  if (!peer.channel) return;
  watch_.remove(peer.channel->socket.get());
  peer.channel.reset();
}

}  // namespace belfry::softnic
