#include "check/trace.hpp"

#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>

namespace belfry::check {
namespace {

const char* scope_word(const Memory& memory, const Event& e) {
  switch (effective_scope(memory.observer(e.observer).place, e.how.scope)) {
    case Scope::block:
      return ".block";
    case Scope::gpu:
      return ".gpu";
    default:
      return ".system";
  }
}

std::string manner(const Memory& memory, const Event& e) {
  if (!e.how.strong) return ".weak";
  std::string words = e.how.acquire && e.how.release ? ".acq_rel"
                      : e.how.acquire                ? ".acquire"
                      : e.how.release                ? ".release"
                                                     : "";
  return words + scope_word(memory, e);
}

std::string came_from(const Event& e) {
  std::string words = e.from == 0 ? "what was there at first" : fmt::format("from step {}", e.from);
  if (e.missed != 0) words += fmt::format("; OLD: step {} has stored since, unseen here yet", e.missed);
  return words;
}

/// Nothing orders the two, so that memory may keep the earlier one in the end.
std::string overtaken(const Event& e) {
  return e.overtaken == 0 ? ""
                          : fmt::format(" (OVERTAKEN: ends up beneath the store of step {})", e.overtaken);
}

std::string what(const Memory& memory, const Event& e) {
  switch (e.kind) {
    case EventKind::load:
      return fmt::format("load{} {} = {:#x} ({})", manner(memory, e), e.place, e.value,
                         e.text.empty() ? came_from(e) : e.text);
    case EventKind::store:
      return fmt::format("store{} {} = {:#x}{}", manner(memory, e), e.place, e.value, overtaken(e));
    case EventKind::modify:
      if (!e.took_place)
        return fmt::format("atomic{} {}: found {:#x}, left it ({})", manner(memory, e), e.place, e.value,
                           came_from(e));
      return fmt::format("atomic{} {}: {:#x} -> {:#x} ({}){}", manner(memory, e), e.place, e.value, e.stored,
                         came_from(e), overtaken(e));
    case EventKind::fence:
      return fmt::format("fence.acq_rel{}", scope_word(memory, e));
    case EventKind::fence_sequential:
      return fmt::format("fence.sc{}", scope_word(memory, e));
    default:
      return e.text;
  }
}

/// From which step on an observer can no longer miss a store.
std::string who_sees(const Memory& memory, const Event& e) {
  std::string seen;
  for (const auto& [id, step] : e.visible)
    seen += fmt::format("{}{} from step {}", seen.empty() ? "" : ", ", memory.observer(id).name, step);
  return fmt::format("  [{}]", seen.empty() ? "visible to nobody else for sure" : "visible to " + seen);
}

}  // namespace

std::string describe(const Memory& memory, const void* at) {
  const Region* region = memory.find_region(at);
  if (region == nullptr) return fmt::format("{}", at);
  auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - region->at);
  std::string name = region->name;
  if (region->stride != 0 && region->stride < region->used) {
    name += fmt::format("[{}]", offset / region->stride);
    offset %= region->stride;
  }
  const Field* field = nullptr;
  for (const Field& each : region->fields)
    if (each.offset <= offset) field = &each;
  if (field != nullptr) {
    name += '.' + field->name;
    offset -= field->offset;
  }
  return offset == 0 ? name : fmt::format("{}+{:#x}", name, offset);
}

std::vector<const void*> callers_of(const void* site) {
  constexpr std::size_t kFrames = 6;
  void* frames[32];
  void** const end = frames + backtrace(frames, 32);
  void** const at = std::find(frames, end, site);
  if (at == end) return {};
  // Not in braces, which would make a list of the two.
  return std::vector<const void*>(at + 1, at + 1 + std::min<std::ptrdiff_t>(kFrames, end - at - 1));
}

void Trace::look(const Memory& memory, unsigned step) {
  for (Event& e : events_) {
    if (e.kind != EventKind::store && e.kind != EventKind::modify) continue;
    const Message* message = nullptr;
    for (const Message& m : memory.line(e.where).order)
      if (m.writer == e.observer && m.number == e.message_number) message = &m;
    if (message == nullptr || e.message_number == 0) continue;
    for (int id = 0; memory.has_observer(id); ++id) {
      if (id == e.observer) continue;
      const auto known =
          std::find_if(e.visible.begin(), e.visible.end(), [id](const auto& v) { return v.first == id; });
      if (known != e.visible.end()) continue;
      const Observer& o = memory.observer(id);
      bool must = true;
      for (unsigned c = 0; c < e.where.cells; ++c)
        must = must && (o.now[e.where.first_cell + c] >= message->stamp ||
                        o.floor[e.where.first_cell + c] >= message->stamp);
      if (must) e.visible.emplace_back(id, step);
    }
  }
}

std::string Trace::text(const Memory& memory) const {
  std::size_t widest_name = 0;
  std::vector<std::string> lines;
  std::size_t widest_line = 0;
  std::vector<const void*> sites;
  for (const Event& e : events_) {
    sites.push_back(e.site);
    sites.insert(sites.end(), e.callers.begin(), e.callers.end());
  }
  learn_lines(sites);
  for (const Event& e : events_) {
    lines.push_back(e.site != nullptr ? source_line(e.site, e.callers) : "");
    widest_line = std::max(widest_line, lines.back().size());
    if (e.observer != kNobody) widest_name = std::max(widest_name, memory.observer(e.observer).name.size());
  }
  std::string text;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Event& e = events_[i];
    text += fmt::format("{:4}  {:{}}  {:{}}  {}", e.step,
                        e.observer == kNobody ? "" : memory.observer(e.observer).name, widest_name, lines[i],
                        widest_line, what(memory, e));
    if (e.kind == EventKind::store || (e.kind == EventKind::modify && e.took_place))
      text += who_sees(memory, e);
    text += '\n';
  }
  return text;
}

}  // namespace belfry::check
