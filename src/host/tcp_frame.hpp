#pragma once
/// \file
/// Frames of the TCP bootstrap: a 24 B header, then a payload. Whatever does not begin with a valid
/// header is refused before any memory is given to it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/host/bootstrap.hpp"
#include "belfry/port/byte_order.hpp"
#include "host/tcp_socket.hpp"

namespace belfry::host {

enum class FrameKind : std::uint16_t {
  hello = 1,         ///< leaf: Hello
  welcome = 2,       ///< root: the group is complete
  refusal = 3,       ///< root: text, why this rank may not join
  contribution = 4,  ///< leaf: its blob
  result = 5,        ///< root: every rank's length (Be64), then the blobs
  abort = 6,         ///< root: kind of the error (Be32), then its text
};

struct FrameHeader {
  Be32 magic;
  Be16 version;
  Be16 kind;      ///< FrameKind
  Be64 sequence;  ///< number of the exchange, from 1; 0 outside exchanges
  Be64 bytes;     ///< of the payload
};
static_assert(sizeof(FrameHeader) == 24 && offsetof(FrameHeader, sequence) == 8);

struct Hello {
  Be32 rank;
  Be32 size;
};
static_assert(sizeof(Hello) == 8);

inline constexpr std::uint32_t kFrameMagic = 0x42464259;  // "BFBY"
inline constexpr std::uint16_t kFrameVersion = 1;
inline constexpr std::size_t kMaxTextBytes = 4096;
/// All blobs of one exchange together.
inline constexpr std::size_t kMaxResultBytes = std::size_t{1} << 30;

struct Frame {
  FrameKind kind = FrameKind::hello;
  std::uint64_t sequence = 0;
  Blob payload;

  std::string_view text() const { return {reinterpret_cast<const char*>(payload.data()), payload.size()}; }
};

/// Takes a byte stream apart. Grows with what has arrived, never with what a header promises.
class FrameDecoder {
 public:
  enum class State : std::uint8_t { incomplete, complete, garbage };

  void push(std::span<const std::byte> bytes);
  /// \param frame filled in if complete. Once garbage, always garbage.
  State next(Frame& frame);

 private:
  std::vector<std::byte> buffer_;
  std::size_t start_ = 0;  ///< of the next frame in buffer_
  bool garbage_ = false;
};

enum class ChannelState : std::uint8_t {
  frame,    ///< one frame came
  nothing,  ///< nothing complete now (or by the deadline)
  closed,   ///< the other end is gone
  garbage,  ///< it speaks something else
};

/// A connection that carries frames.
class Channel {
 public:
  Channel() = default;
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.get(); }
  bool open() const { return static_cast<bool>(socket_); }
  void close() { socket_.reset(); }

  /// What has arrived; does not wait.
  ChannelState read(Frame& frame);
  /// Waits for a frame.
  ChannelState read(Frame& frame, Deadline deadline);
  /// \return 0, ETIMEDOUT, or the errno of the connection
  int write(FrameKind kind, std::uint64_t sequence, std::span<const std::byte> payload, Deadline deadline);

 private:
  int write_all(std::span<const std::byte> bytes, Deadline deadline);

  Descriptor socket_;
  FrameDecoder decoder_;
};

std::span<const std::byte> as_payload(std::string_view text);

}  // namespace belfry::host
