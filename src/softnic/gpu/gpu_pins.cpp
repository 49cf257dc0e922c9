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

std::vector<HostRange> GpuPins::update(GpuEngine& engine, const std::vector<HostRange>& wanted) {
  const std::vector<HostRange> pages = join_pages(wanted);
  const auto is_wanted = [&pages](const Held& held) {
    return std::find(pages.begin(), pages.end(), held.range) != pages.end();
  };
  std::vector<Held> kept;
  for (const Held& held : held_) {
    // What others pinned they may have let go since: asking again costs little.
    if (held.ours && is_wanted(held)) kept.push_back(held);
    if (held.ours && !is_wanted(held)) engine.unpin(held.range);
  }
  held_ = std::move(kept);
  std::vector<HostRange> refused;
  for (const HostRange& range : pages) {
    if (std::any_of(held_.begin(), held_.end(), [&](const Held& held) { return held.range == range; }))
      continue;
    const Pinned pinned = engine.pin(range);
    if (pinned == Pinned::refused) {
      refused.push_back(range);
    } else {
      held_.push_back({range, pinned == Pinned::ours});
    }
  }
  return refused;
}

}  // namespace belfry::softnic
