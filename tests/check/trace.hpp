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
  Where where;
  std::string place;  ///< what was accessed, in words
  Manner how;
  std::uint64_t value = 0;
  unsigned from = 0;         ///< of a read: step of the store that it took; 0: initial contents
  unsigned missed = 0;       ///< of a read: step of the newest store, where it took an older one
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

/// Where in a region an access lies: "blocks+0x40".
std::string describe(const Memory& memory, const void* at);

/// FILE:LINE of a return address, outside of the shim where it was inlined; an address if there is no answer.
std::string source_line(const void* site);

}  // namespace belfry::check
