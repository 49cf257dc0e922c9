#pragma once
/// \file
/// The memory of a ring between two processes: a memfd of one control page and the data, mapped so
/// that the data lies in the address space twice, one image behind the other. A frame that wraps is
/// therefore contiguous, for the writer and for the reader.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "softnic/fabric/owned_fd.hpp"
#include "softnic/result.hpp"

namespace belfry::softnic {

inline constexpr std::uint64_t kRingMagic = 0x31676e6972666c62u;  // "blfring1"
inline constexpr std::uint32_t kRingVersion = 1;
inline constexpr std::uint32_t kRingBytesLeast = 16u << 10;
inline constexpr std::uint32_t kRingBytesMost = 64u << 20;

/// The head of the memfd, host byte order. Writer and reader each have cache lines of their own, two
/// apart because processors fetch lines in pairs. Positions are bytes since the start, never wrapped.
struct RingControl {
  std::uint64_t magic = kRingMagic;
  std::uint32_t version = kRingVersion;
  std::uint32_t bytes = 0;                            ///< of the data; a power of two
  alignas(128) std::atomic<std::uint64_t> tail{0};    ///< written by the producer
  alignas(128) std::atomic<std::uint64_t> head{0};    ///< written by the consumer
  alignas(128) std::atomic<std::uint32_t> asleep{0};  ///< 1: the consumer wants a signal
};
static_assert(offsetof(RingControl, version) == 8);
static_assert(offsetof(RingControl, bytes) == 12);
static_assert(offsetof(RingControl, tail) == 128);
static_assert(offsetof(RingControl, head) == 256);
static_assert(offsetof(RingControl, asleep) == 384);
static_assert(sizeof(RingControl) == 512);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // else it would not work between processes
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

bool valid_ring_bytes(std::uint32_t bytes);

/// One process's mapping of a ring.
class RingMapping {
 public:
  enum class Side { producer, consumer };  ///< a consumer cannot write the data

  RingMapping() = default;
  ~RingMapping() { reset(); }
  RingMapping(RingMapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), mapped_(other.mapped_), bytes_(other.bytes_) {}
  RingMapping& operator=(RingMapping&& other) noexcept {
    if (this != &other) {
      reset();
      base_ = std::exchange(other.base_, nullptr);
      mapped_ = other.mapped_;
      bytes_ = other.bytes_;
    }
    return *this;
  }

  /// \return the mapping, or the errno of the call that failed
  static Result<RingMapping> map(int fd, std::uint32_t bytes, Side side);

  RingControl& control() const { return *reinterpret_cast<RingControl*>(base_); }
  std::byte* data() const;  ///< 2 * bytes() long
  std::uint32_t bytes() const { return bytes_; }

 private:
  void reset();

  std::byte* base_ = nullptr;
  std::size_t mapped_ = 0;
  std::uint32_t bytes_ = 0;
};

/// Makes the memfd of an empty ring, sealed so that nobody can change its size. Its pages come to be
/// when they are first written.
Result<OwnedFd> create_ring(std::uint32_t bytes);

/// Checks a descriptor that a peer has sent, before its memory is touched: reading a file that
/// shrinks raises SIGBUS. 0, or EPROTO: not a ring of `bytes`.
int check_ring_fd(int fd, std::uint32_t bytes);

/// Checks the constant part of a mapped control page. 0 or EPROTO.
int check_ring_control(const RingMapping& mapping);

}  // namespace belfry::softnic
