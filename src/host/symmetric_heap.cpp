#include "belfry/host/symmetric_heap.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>

#include "belfry/host/errors.hpp"
#include "host/heap_history.hpp"

namespace belfry::host {

namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

HeapRange whole_window(const Windows& windows, std::uint32_t window) {
  return {window, 0, windows.memory(window).bytes(), windows.alignment(window)};
}

}  // namespace

SymmetricHeap::SymmetricHeap(const Windows& windows, std::uint32_t window)
    : SymmetricHeap(whole_window(windows, window)) {}

SymmetricHeap::SymmetricHeap(const HeapRange& range) : range_(range) {
  if (!std::has_single_bit(range.alignment) || range.offset > kNone / 2 || range.bytes > kNone / 2) {
    throw Error(ErrorKind::bad_argument,
                "a heap of " + std::to_string(range.bytes) + " B from offset " +
                    std::to_string(range.offset) + ", aligned to " + std::to_string(range.alignment),
                "The alignment must be a power of two, and the range lie in a window");
  }
  const std::uint64_t start = round_up(range.offset, kGranule);
  const std::uint64_t end = (range.offset + range.bytes) / kGranule * kGranule;
  if (end > start) put_back(start, end - start);
  range_hash_ = hash_words(kEmptyHistory, {range.window, range.offset, range.bytes, range.alignment});
}

void SymmetricHeap::remember(const Call& call) {
  ++calls_;
  hash_ = hash_words(hash_, {static_cast<std::uint64_t>(call.kind), call.bytes, call.alignment, call.offset});
  if (recent_.size() < kMostCallsKept) recent_.push_back(call);
}

device::Place SymmetricHeap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes == 0) throw Error(ErrorKind::bad_argument, "an allocation of 0 bytes", "Ask for at least 1");
  if (!std::has_single_bit(alignment) || alignment > range_.alignment) {
    throw Error(ErrorKind::bad_argument, "an alignment of " + std::to_string(alignment) + " bytes",
                "It must be a power of two, at most " + std::to_string(range_.alignment) +
                    ": the window's address has no more on every PE (AllocationOptions::alignment)");
  }
  const std::uint64_t step = std::max(alignment, kGranule);
  const std::uint64_t wanted = bytes <= free_bytes_ ? round_up(bytes, kGranule) : kNone;
  for (const auto& [offset, size] : free_) {
    const std::uint64_t start = round_up(offset, step);
    const std::uint64_t skipped = start - offset;
    if (skipped > size || size - skipped < wanted) continue;
    const std::uint64_t behind = size - skipped - wanted;
    const std::uint64_t whole = offset;
    free_bytes_ -= size;
    free_.erase(whole);
    if (skipped != 0) put_back(whole, skipped);
    if (behind != 0) put_back(start + wanted, behind);
    used_.emplace(start, wanted);
    remember({Call::Kind::allocate, bytes, alignment, start});
    return {range_.window, start};
  }
  remember({Call::Kind::allocate, bytes, alignment, kNone});
  const bool scattered = bytes <= free_bytes_;
  throw Error(
      ErrorKind::system,
      "the symmetric heap has no room for " + std::to_string(bytes) + " B aligned to " +
          std::to_string(alignment) + ": " + std::to_string(free_bytes_) + " of " +
          std::to_string(range_.bytes) + " B are free, the largest piece " + std::to_string(largest_free()) +
          " B",
      scattered
          ? "Enough is free, in pieces too small or at wrong offsets: free more, or make the window larger"
          : "Free something, or make the window larger",
      ENOMEM);
}

void SymmetricHeap::free(device::Place place) {
  const auto found = place.window == range_.window ? used_.find(place.offset) : used_.end();
  if (found == used_.end()) {
    throw Error(ErrorKind::bad_argument,
                "nothing is allocated at offset " + std::to_string(place.offset) + " of window " +
                    std::to_string(place.window),
                "Free each place that allocate() gave once, on the heap that it came from");
  }
  const std::uint64_t bytes = found->second;
  used_.erase(found);
  put_back(place.offset, bytes);
  remember({Call::Kind::free, 0, 0, place.offset});
}

void SymmetricHeap::put_back(std::uint64_t offset, std::uint64_t bytes) {
  free_bytes_ += bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

std::uint64_t SymmetricHeap::largest_free() const {
  std::uint64_t largest = 0;
  for (const auto& [offset, size] : free_) largest = std::max(largest, size);
  return largest;
}

void SymmetricHeap::check(Bootstrap& bootstrap, Deadline deadline) {
  compare_histories(bootstrap, {range_hash_, calls_, hash_}, recent_at_, recent_, deadline);
  recent_.clear();
  recent_at_ = calls_;
}

}  // namespace belfry::host
