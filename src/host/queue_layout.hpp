#pragma once
/// \file
/// Where the parts of a queue lie in its memory: the rings from a page's start, the doorbell record in
/// a cache line of its own behind them.

#include <cstddef>

namespace belfry::host {

struct RingLayout {
  std::size_t record_offset = 0;
  std::size_t total_bytes = 0;  ///< whole pages
};

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kPageBytes = 4096;

constexpr RingLayout lay_out_ring(std::size_t ring_bytes) {
  RingLayout layout;
  layout.record_offset = (ring_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  layout.total_bytes = (layout.record_offset + kCacheLine + kPageBytes - 1) / kPageBytes * kPageBytes;
  return layout;
}
static_assert(lay_out_ring(64).record_offset == 64 && lay_out_ring(64).total_bytes == kPageBytes);
static_assert(lay_out_ring(kPageBytes).total_bytes == 2 * kPageBytes);

}  // namespace belfry::host
