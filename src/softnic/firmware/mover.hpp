#pragma once
/// \file
/// Stage three of the NIC on the CPU: moving bytes of host memory. Every pointer here has been through
/// check_key().

#include <atomic>
#include <cstdint>
#include <cstring>

#include "softnic/fabric/fabric.hpp"

namespace belfry::softnic {

/// A stretch of this process's memory.
struct Span {
  unsigned char* memory;
  std::uint32_t bytes;
};

inline constexpr std::uint32_t kMaxSpans = 64;

struct SpanList {
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  Span items[kMaxSpans];

  void clear() { count = 0, bytes = 0; }
  void add(unsigned char* memory, std::uint32_t length) {
    items[count++] = {memory, length};
    bytes += length;
  }
};

/// One release store of a word; \pre `to` is aligned for it.
template <class Word>
void store_word(unsigned char* to, const unsigned char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
}

/// Stores the last bytes of a message, which lie in one 8 B word, in ascending order. Release, each: no byte
/// may become visible before the body, which was copied before.
inline void store_tail(unsigned char* to, const unsigned char* from, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (bytes == 8) return store_word<std::uint64_t>(to, from);
  if (bytes == 4 && address % 4 == 0) return store_word<std::uint32_t>(to, from);
  if (bytes == 2 && address % 2 == 0) return store_word<std::uint16_t>(to, from);
  for (std::size_t i = 0; i < bytes; ++i) store_word<unsigned char>(to + i, from + i);
}

/// Copies so that the last bytes become visible last: programs that poll the last byte of a message
/// (perftest does) must then find the rest, as they do behind a PCIe write of ascending addresses.
/// A naturally aligned 2, 4 or 8 B message is one store.
inline void move_payload(unsigned char* to, const unsigned char* from, std::size_t bytes) {
  if (bytes == 8 && (reinterpret_cast<std::uintptr_t>(to) & 7) == 0) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
        .store(word, std::memory_order_release);
    return;
  }
  if (bytes == 0) return;
  // The tail is what lies in the last naturally aligned 8 B word, or all of a message within one word.
  const std::size_t in_word = (reinterpret_cast<std::uintptr_t>(to + bytes - 1) & 7) + 1;
  const std::size_t tail = in_word < bytes ? in_word : bytes;
  const std::size_t body = bytes - tail;
  // A message may overlap its own target (both ends in one process): moving the body can change the
  // tail's source, so the tail is read first.
  unsigned char last[8];
  std::memcpy(last, from + body, tail);
  if (body != 0) std::memmove(to, from, body);
  store_tail(to + body, last, tail);
}

/// Reads a byte of every page of `parts`, so that memory that is gone faults here, in code that may be left
/// at any point, and not inside the fabric.
inline void touch(const FramePart* parts, std::uint32_t count) {
  constexpr std::size_t kPage = 4096;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* data = static_cast<const volatile unsigned char*>(parts[i].data);
    for (std::size_t at = 0; at < parts[i].bytes; at += kPage) static_cast<void>(data[at]);
    if (parts[i].bytes != 0) static_cast<void>(data[parts[i].bytes - 1]);
  }
}

/// The parts of `list` that hold message bytes [offset, offset + bytes).
/// \param out room for kMaxSpans parts
/// \return how many
inline std::uint32_t slice(const SpanList& list, std::uint64_t offset, std::uint64_t bytes, FramePart* out) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < list.count && bytes != 0; ++i) {
    const Span& span = list.items[i];
    if (offset >= span.bytes) {
      offset -= span.bytes;
      continue;
    }
    const std::uint64_t here = span.bytes - offset < bytes ? span.bytes - offset : bytes;
    out[count++] = {span.memory + offset, static_cast<std::size_t>(here)};
    bytes -= here;
    offset = 0;
  }
  return count;
}

/// Writes `bytes` from `from` to the message position `offset` of `list`, which has room for them.
/// \param move as move_payload()
template <class Move>
void scatter(const SpanList& list, std::uint64_t offset, const unsigned char* from, std::uint64_t bytes,
             const Move& move) {
  FramePart parts[kMaxSpans];
  const std::uint32_t count = slice(list, offset, bytes, parts);
  for (std::uint32_t i = 0; i < count; ++i) {
    move(static_cast<unsigned char*>(const_cast<void*>(parts[i].data)), from, parts[i].bytes);
    from += parts[i].bytes;
  }
}

}  // namespace belfry::softnic
