#include "softnic/gpu/gpu_pins.hpp"

#include <algorithm>

#include "softnic/page_bytes.hpp"

namespace belfry::softnic {

namespace {

std::uint64_t begin_of(const HostRange& range) { return reinterpret_cast<std::uintptr_t>(range.address); }
std::uint64_t end_of(const HostRange& range) { return begin_of(range) + range.bytes; }

HostRange between(std::uint64_t begin, std::uint64_t end) {
  return {reinterpret_cast<void*>(begin), end - begin};
}

/// What of `ranges` lies outside `hole`.
std::vector<HostRange> without(const std::vector<HostRange>& ranges, const HostRange& hole) {
  std::vector<HostRange> left;
  for (const HostRange& range : ranges) {
    const std::uint64_t before = std::min(end_of(range), begin_of(hole));
    const std::uint64_t behind = std::max(begin_of(range), end_of(hole));
    if (begin_of(range) < before) left.push_back(between(begin_of(range), before));
    if (behind < end_of(range)) left.push_back(between(behind, end_of(range)));
  }
  return left;
}

}  // namespace

bool overlap(const HostRange& a, const HostRange& b) {
  return begin_of(a) < end_of(b) && begin_of(b) < end_of(a);
}

std::vector<HostRange> join_pages(std::vector<HostRange> ranges) {
  const std::uint64_t page = page_bytes();
  std::erase_if(ranges, [](const HostRange& range) { return range.bytes == 0; });
  for (HostRange& range : ranges)
    range = between(begin_of(range) / page * page, (end_of(range) + page - 1) / page * page);
  std::sort(ranges.begin(), ranges.end(),
            [](const HostRange& a, const HostRange& b) { return begin_of(a) < begin_of(b); });
  std::vector<HostRange> joined;
  for (const HostRange& range : ranges) {
    if (!joined.empty() && begin_of(range) < end_of(joined.back())) {
      joined.back() = between(begin_of(joined.back()), std::max(end_of(joined.back()), end_of(range)));
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

/// Memory of which a part is wanted no longer may be another memory the next time: it is pinned anew, unless
/// an engine that runs may be touching the rest.
bool GpuPins::is_stale(const HostRange& held, const GpuEngine& engine) const {
  std::vector<HostRange> unwanted{held};
  for (const auto& [other, ranges] : wanted_) {
    for (const HostRange& range : ranges) {
      if (!overlap(range, held)) continue;
      if (other != &engine) return false;
      unwanted = without(unwanted, range);
    }
  }
  return !unwanted.empty();
}

std::vector<HostRange> GpuPins::not_held(const HostRange& wanted) const {
  std::vector<HostRange> left{wanted};
  for (const HostRange& held : held_) left = without(left, held);
  return left;
}

std::vector<HostRange> GpuPins::update(GpuEngine& engine, const std::vector<HostRange>& wanted) {
  const std::lock_guard lock(mutex_);
  const std::vector<HostRange>& pages = wanted_[&engine] = join_pages(wanted);
  std::erase_if(held_, [&](const HostRange& held) {
    if (!is_stale(held, engine)) return false;
    engine.unpin(held);
    return true;
  });
  std::vector<HostRange> refused;
  for (const HostRange& range : pages) {
    // What others pinned they may have let go since: asking again costs little.
    for (const HostRange& piece : not_held(range)) {
      const Pinned pinned = engine.pin(piece);
      if (pinned == Pinned::refused) refused.push_back(piece);
      if (pinned == Pinned::ours) held_.push_back(piece);
    }
  }
  return refused;
}

}  // namespace belfry::softnic
