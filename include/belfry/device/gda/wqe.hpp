#pragma once
/// \file
/// WQEs as mini-gda builds them: straight into the ring, one 16 B store a segment, nothing in local memory.

#include <cstddef>
#include <cstdint>

#include "belfry/device/view.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/wire/wqe.hpp"

namespace belfry::device::gda {

/// Writes the segments of the WQE at `index`, in order. The ring is circular in bytes, and a segment never
/// straddles its end.
/// \tparam one_block whether the WQE ends within its first block, and so before the ring does
template <bool one_block>
class WqeWriter {
 public:
  BELFRY_FN WqeWriter(const SendQueue& queue, std::uint64_t index)
      : blocks_(queue.blocks),
        mask_((wire::kBlockBytes << queue.log_blocks) - 1u),
        at_(static_cast<std::uint32_t>(index) * wire::kBlockBytes) {
    if constexpr (one_block) {
      blocks_ += at_ & mask_;
      at_ = 0;
    }
  }

  BELFRY_FN void put(port::Vector16 segment) {
    port::store_segment(blocks_ + (one_block ? at_ : at_ & mask_), segment);
    at_ += wire::kSegmentBytes;
  }
  template <class Segment>
  BELFRY_FN void put(const Segment& segment) {
    put(port::as_vector(segment));
  }

 private:
  std::byte* blocks_;
  std::uint32_t mask_;
  std::uint32_t at_;  // wraps at 2^32, a multiple of every ring's size
};

/// The remote end of an operation.
struct Remote {
  std::uint64_t address = 0;
  Be32 rkey = Be32::from_raw(0);

  BELFRY_FN wire::RemoteAddressSegment segment() const { return {Be64(address), rkey, Be32::from_raw(0)}; }
};

/// The local end of an operation.
struct Local {
  std::uint64_t address = 0;
  Be32 lkey = Be32::from_raw(0);

  BELFRY_FN wire::DataSegment segment(std::uint32_t bytes) const {
    return {Be32(bytes), lkey, Be64(address)};
  }
};

// Each kind of WQE below says its opcode, its size in segments and whether that is one block always, and
// writes what follows the control segment.

/// RDMA WRITE of memory that the NIC reads. 0 bytes: nothing but a completion.
struct PointerWrite {
  static constexpr wire::WqeOpcode opcode = wire::WqeOpcode::rdma_write;
  static constexpr bool one_block = true;
  Remote remote;
  Local local;
  std::uint32_t bytes = 0;

  // A data segment of 0 bytes would mean 2^31.
  BELFRY_FN std::uint32_t segments() const { return bytes == 0 ? 2 : 3; }
  template <class Writer>
  BELFRY_FN void write(Writer& to) const {
    to.put(remote.segment());
    if (bytes != 0) to.put(local.segment(bytes));
  }
};

/// RDMA WRITE of up to 8 B from a register.
struct ValueWrite {
  static constexpr wire::WqeOpcode opcode = wire::WqeOpcode::rdma_write;
  static constexpr bool one_block = true;
  Remote remote;
  std::uint64_t value = 0;
  std::uint32_t bytes = 8;

  BELFRY_FN std::uint32_t segments() const { return 3; }
  template <class Writer>
  BELFRY_FN void write(Writer& to) const {
    to.put(remote.segment());
    const std::uint32_t header = Be32(wire::kInlineFlag | bytes).raw();
    to.put(port::Vector16{header | value << 32, value >> 32});
  }
};

/// RDMA WRITE whose payload is copied into the WQE.
struct InlineWrite {
  static constexpr wire::WqeOpcode opcode = wire::WqeOpcode::rdma_write;
  static constexpr bool one_block = false;
  Remote remote;
  const std::byte* source = nullptr;
  std::uint32_t bytes = 0;

  BELFRY_FN std::uint32_t segments() const { return 2 + (bytes == 0 ? 0 : wire::inline_segments(bytes)); }
  template <class Writer>
  BELFRY_FN void write(Writer& to) const {
    to.put(remote.segment());
    if (bytes == 0) return;
    const std::uint32_t header = Be32(wire::kInlineFlag | bytes).raw();
    to.put(port::Vector16{header | static_cast<std::uint64_t>(word(0)) << 32,
                          word(4) | static_cast<std::uint64_t>(word(8)) << 32});
    for (std::uint32_t at = 12; at < bytes; at += wire::kSegmentBytes)
      to.put(port::Vector16{word(at) | static_cast<std::uint64_t>(word(at + 4)) << 32,
                            word(at + 8) | static_cast<std::uint64_t>(word(at + 12)) << 32});
  }

 private:
  /// Four bytes of the payload, as far as they exist.
  BELFRY_FN std::uint32_t word(std::uint32_t at) const {
    if (at + 4 <= bytes && (reinterpret_cast<std::uintptr_t>(source) & 3) == 0)
      return *reinterpret_cast<const std::uint32_t*>(source + at);
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < 4 && at + i < bytes; ++i)
      value |= static_cast<std::uint32_t>(source[at + i]) << (8 * i);
    return value;
  }
};

/// The same of the commonest few bytes, 4, 8 or 12 that are aligned so: one block, and nothing to decide
/// about.
struct ShortInlineWrite {
  static constexpr wire::WqeOpcode opcode = wire::WqeOpcode::rdma_write;
  static constexpr bool one_block = true;
  Remote remote;
  const std::byte* source = nullptr;
  std::uint32_t bytes = 0;

  BELFRY_FN static bool fits(const std::byte* source, std::uint64_t bytes) {
    const auto address = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(source));
    return (bytes - 1 < 12) BELFRY_AND(((address | static_cast<std::uint32_t>(bytes)) & 3u) == 0);
  }

  BELFRY_FN std::uint32_t segments() const { return 3; }
  template <class Writer>
  BELFRY_FN void write(Writer& to) const {
    to.put(remote.segment());
    const auto* words = reinterpret_cast<const std::uint32_t*>(source);
    const std::uint64_t first = words[0];
    const std::uint64_t second = bytes > 4 ? words[1] : 0;
    const std::uint64_t third = bytes > 8 ? words[2] : 0;
    const std::uint32_t header = Be32(wire::kInlineFlag | bytes).raw();
    to.put(port::Vector16{header | first << 32, second | third << 32});
  }
};

/// RDMA READ.
struct Read {
  static constexpr wire::WqeOpcode opcode = wire::WqeOpcode::rdma_read;
  static constexpr bool one_block = true;
  Remote remote;
  Local local;
  std::uint32_t bytes = 0;

  BELFRY_FN std::uint32_t segments() const { return bytes == 0 ? 2 : 3; }
  template <class Writer>
  BELFRY_FN void write(Writer& to) const {
    to.put(remote.segment());
    if (bytes != 0) to.put(local.segment(bytes));
  }
};

/// 8 B fetch-and-add; the old value goes to `result`.
struct FetchAdd {
  static constexpr wire::WqeOpcode opcode = wire::WqeOpcode::atomic_fetch_add;
  static constexpr bool one_block = true;
  Remote remote;
  Local result;
  std::uint64_t add = 0;

  BELFRY_FN std::uint32_t segments() const { return 4; }
  template <class Writer>
  BELFRY_FN void write(Writer& to) const {
    to.put(remote.segment());
    to.put(wire::AtomicSegment{Be64(add), Be64(0)});
    to.put(result.segment(8));
  }
};

/// 8 B compare-and-swap; the old value goes to `result`.
struct CompareSwap {
  static constexpr wire::WqeOpcode opcode = wire::WqeOpcode::atomic_compare_swap;
  static constexpr bool one_block = true;
  Remote remote;
  Local result;
  std::uint64_t compare = 0;
  std::uint64_t swap = 0;

  BELFRY_FN std::uint32_t segments() const { return 4; }
  template <class Writer>
  BELFRY_FN void write(Writer& to) const {
    to.put(remote.segment());
    to.put(wire::AtomicSegment{Be64(swap), Be64(compare)});
    to.put(result.segment(8));
  }
};

/// Nothing but a completion.
struct Nop {
  static constexpr wire::WqeOpcode opcode = wire::WqeOpcode::nop;
  static constexpr bool one_block = true;
  BELFRY_FN std::uint32_t segments() const { return 1; }
  template <class Writer>
  BELFRY_FN void write(Writer&) const {}
};

/// Writes a whole WQE. It can be rewritten until it is published.
template <class Wqe>
BELFRY_FN void build(const SendQueue& queue, std::uint64_t index, const Wqe& wqe, bool signaled) {
  WqeWriter<Wqe::one_block> to(queue, index);
  const std::uint8_t flags = signaled ? wire::kWqeCompletionAlways : std::uint8_t{0};
  to.put(wire::make_control(Wqe::opcode, index, queue.qpn, wqe.segments(), flags));
  wqe.write(to);
}

}  // namespace belfry::device::gda
