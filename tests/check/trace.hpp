#pragma once
/// \file
/// What happened in an execution, for people: who, at which line of the sources, what, and when each store
/// became visible to whom.

#include <cstdint>
#include <string>
#include <vector>

#include "check/memory.hpp"

namespace belfry::check {

enum class EventKind { load, store, modify, fence, fence_sequential, meet, note };

struct Event {
  EventKind kind = EventKind::note;
  unsigned step = 0;
  int observer = kNobody;
  const void* site = nullptr;
  std::vector<const void*> callers;  ///< return addresses beyond it
  Where where;
  std::string place;  ///< what was accessed, in words
  Manner how;
  std::uint64_t value = 0;
  unsigned from = 0;         ///< of a read: step of the store that it took; 0: initial contents
  unsigned missed = 0;       ///< of a read: step of the newest store, where it took an older one
  unsigned overtaken = 0;    ///< of a store: step of an earlier one that it ended up beneath
  std::uint64_t stored = 0;  ///< of a read-modify-write that took place: what it stored
  bool took_place = true;
  std::string text;
  std::vector<std::pair<int, unsigned>> visible;  ///< of a store: observer and step from which it must see it
  unsigned message_number = 0;
};

class Trace {
 public:
  bool on = false;
  void add(Event event) {
    if (on) events_.push_back(std::move(event));
  }
  Event& last() { return events_.back(); }
  /// To be called after each step: notes what has become visible to whom.
  void look(const Memory& memory, unsigned step);
  /// One line an event. Source lines are found with addr2line.
  std::string text(const Memory& memory) const;
  const std::vector<Event>& events() const { return events_; }

 private:
  std::vector<Event> events_;
};

/// Where in a region an access lies: "state.consumer", "blocks[1]+0x10".
std::string describe(const Memory& memory, const void* at);

/// FILE:LINE of a return address outside of the shim, as a path of the repository, and where its file is
/// entered from: "include/belfry/device/gda/indices.hpp:93 < completion.hpp:150". An address if there is no
/// answer.
std::string source_line(const void* site, const std::vector<const void*>& callers = {});
/// Looks many of them up at once.
void learn_lines(const std::vector<const void*>& sites);
/// Return addresses beyond `site`, which is one of the running stack.
std::vector<const void*> callers_of(const void* site);

}  // namespace belfry::check
