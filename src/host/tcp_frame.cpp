#include "host/tcp_frame.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace belfry::host {

namespace {

/// \return false for a kind nobody knows
bool limit_of(std::uint16_t kind, std::uint64_t& most) {
  switch (static_cast<FrameKind>(kind)) {
    case FrameKind::hello:
      most = sizeof(Hello);
      return true;
    case FrameKind::welcome:
      most = 0;
      return true;
    case FrameKind::refusal:
    case FrameKind::abort:
      most = kMaxTextBytes;
      return true;
    case FrameKind::contribution:
      most = kMaxBlobBytes;
      return true;
    case FrameKind::result:
      most = kMaxResultBytes;
      return true;
  }
  return false;
}

bool valid(const FrameHeader& header) {
  std::uint64_t most = 0;
  return header.magic.get() == kFrameMagic && header.version.get() == kFrameVersion &&
         limit_of(header.kind.get(), most) && header.bytes.get() <= most;
}

}  // namespace

std::span<const std::byte> as_payload(std::string_view text) {
  return std::as_bytes(std::span(text.data(), std::min(text.size(), kMaxTextBytes)));
}

void FrameDecoder::push(std::span<const std::byte> bytes) {
  if (garbage_) return;
  if (start_ == buffer_.size()) {
    buffer_.clear();
    start_ = 0;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

FrameDecoder::State FrameDecoder::next(Frame& frame) {
  if (garbage_) return State::garbage;
  const std::span<const std::byte> rest = std::span(buffer_).subspan(start_);
  FrameHeader header;
  if (rest.size() < sizeof header) {
    // A stranger's first bytes give it away before they fill a header.
    const Be32 magic(kFrameMagic);
    const std::size_t known = std::min(rest.size(), sizeof magic);
    garbage_ = known != 0 && std::memcmp(rest.data(), &magic, known) != 0;
    return garbage_ ? State::garbage : State::incomplete;
  }
  std::memcpy(&header, rest.data(), sizeof header);
  if (!valid(header)) {
    garbage_ = true;
    return State::garbage;
  }
  const std::size_t bytes = header.bytes.get();
  if (rest.size() - sizeof header < bytes) return State::incomplete;
  frame.kind = static_cast<FrameKind>(header.kind.get());
  frame.sequence = header.sequence.get();
  const auto payload = rest.subspan(sizeof header, bytes);
  frame.payload.assign(payload.begin(), payload.end());
  start_ += sizeof header + bytes;
  return State::complete;
}

ChannelState Channel::read(Frame& frame) {
  std::array<std::byte, 65536> chunk;
  for (;;) {
    switch (decoder_.next(frame)) {
      case FrameDecoder::State::complete:
        return ChannelState::frame;
      case FrameDecoder::State::garbage:
        return ChannelState::garbage;
      case FrameDecoder::State::incomplete:
        break;
    }
    const ssize_t got = recv(socket_.get(), chunk.data(), chunk.size(), 0);
    if (got > 0) {
      decoder_.push(std::span(chunk).first(static_cast<std::size_t>(got)));
    } else if (got == 0) {
      return ChannelState::closed;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return ChannelState::nothing;
    } else if (errno != EINTR) {
      return ChannelState::closed;
    }
  }
}

ChannelState Channel::read(Frame& frame, Deadline deadline) {
  for (;;) {
    const ChannelState state = read(frame);
    if (state != ChannelState::nothing) return state;
    if (!wait_ready(socket_.get(), POLLIN, deadline)) return ChannelState::nothing;
  }
}

int Channel::write(FrameKind kind, std::uint64_t sequence, std::span<const std::byte> payload,
                   Deadline deadline) {
  const FrameHeader header{Be32(kFrameMagic), Be16(kFrameVersion), Be16(static_cast<std::uint16_t>(kind)),
                           Be64(sequence), Be64(payload.size())};
  const int code = write_all(std::as_bytes(std::span(&header, 1)), deadline);
  return code != 0 ? code : write_all(payload, deadline);
}

int Channel::write_all(std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_ready(socket_.get(), POLLOUT, deadline)) return ETIMEDOUT;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace belfry::host
