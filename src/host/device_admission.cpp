#include "host/device_admission.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace belfry::host {

namespace {

using device::CompletionLayout;
using device::DoorbellMode;
using device::MemoryKind;
using device::Requirements;
using device::SendQueue;

std::string to_string(DoorbellMode mode) { return mode == DoorbellMode::record ? "record" : "no_record"; }
std::string to_string(CompletionLayout layout) {
  return layout == CompletionLayout::ring ? "ring" : "collapsed";
}
std::string to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::own:
      return "memory of its own";
    case MemoryKind::host:
      return "host memory";
    case MemoryKind::peer:
      return "another GPU's memory";
  }
  return "memory of an unknown kind";
}

/// The queues that fail a test: the first by name, the others by number.
struct Failing {
  const SendQueue* first = nullptr;
  std::string text;  ///< "queue 0 to PE 1 (and 6 more)"
};

Failing find_failing(const AdmissionFacts& facts, const std::function<bool(const SendQueue&)>& fails) {
  Failing failing;
  std::size_t more = 0;
  for (std::size_t slot = 0; slot < facts.queues.size(); ++slot) {
    const SendQueue& queue = facts.queues[slot];
    if (queue.state == nullptr || !fails(queue)) continue;
    if (failing.first != nullptr) {
      ++more;
      continue;
    }
    failing.first = &queue;
    failing.text =
        "queue " + std::to_string(slot % facts.queues_a_peer) + " to PE " + std::to_string(queue.peer);
  }
  if (more != 0) failing.text += " (and " + std::to_string(more) + " more)";
  return failing;
}

void check_modes(const Requirements& r, const AdmissionFacts& facts, std::vector<Refusal>& refusals) {
  Failing bad = find_failing(facts, [&](const SendQueue& q) { return q.doorbell_mode != r.doorbell_mode; });
  if (bad.first != nullptr) {
    refusals.push_back({"it rings in doorbell mode " + to_string(r.doorbell_mode) + ", and " + bad.text +
                            " was made in mode " + to_string(bad.first->doorbell_mode),
                        "Set DeviceEndpointOptions::doorbell to " + to_string(r.doorbell_mode) +
                            ", or take a policy for the other mode"});
  }
  bad = find_failing(facts, [&](const SendQueue& q) { return q.completion_layout != r.completion_layout; });
  if (bad.first != nullptr) {
    refusals.push_back({"it polls a " + to_string(r.completion_layout) + " completion queue, and that of " +
                            bad.text + " is " + to_string(bad.first->completion_layout),
                        "Set DeviceEndpointOptions::completions to " + to_string(r.completion_layout) +
                            ", or take a policy for the other layout"});
  }
}

/// Assumption A1, part by part.
void check_own_memory(const AdmissionFacts& facts, std::vector<Refusal>& refusals) {
  const std::string assumes =
      "its ordering assumes that queue, record and payload lie in the memory of the processor that posts "
      "(A1), and ";
  const std::string instead = ", or take an ordering of system scope";
  Failing bad = find_failing(facts, [](const SendQueue& q) { return q.blocks_kind != MemoryKind::own; });
  if (bad.first != nullptr) {
    refusals.push_back({assumes + bad.text + " lies in " + to_string(bad.first->blocks_kind),
                        "Place Placement::send_queue in memory of kind own" + instead});
  }
  bad = find_failing(facts, [](const SendQueue& q) {
    return q.doorbell_mode == DoorbellMode::record && q.record_kind != MemoryKind::own;
  });
  if (bad.first != nullptr) {
    refusals.push_back(
        {assumes + "the record of " + bad.text + " lies in " + to_string(bad.first->record_kind),
         "Place Placement::record in memory of kind own" + instead});
  }
  for (std::size_t window = 0; window < facts.windows.size(); ++window) {
    if (facts.windows[window] == MemoryKind::own) continue;
    refusals.push_back(
        {assumes + "window " + std::to_string(window) + " lies in " + to_string(facts.windows[window]),
         "Give the window memory of kind own (WindowOptions::memory and kind)" + instead});
    break;
  }
}

/// Assumption A2, where it is known to be wrong: a NIC looks at the records of all queues of a UAR page when
/// one of them rings, and a page may hold two registers.
void check_doorbell_only(const AdmissionFacts& facts, std::vector<Refusal>& refusals) {
  std::map<std::uint32_t, std::size_t> users;
  for (std::size_t slot = 0; slot < facts.queues.size(); ++slot)
    if (facts.queues[slot].state != nullptr) ++users[facts.uar_pages[slot]];
  const Failing bad = find_failing(facts, [&](const SendQueue& q) {
    const auto slot = static_cast<std::size_t>(&q - facts.queues.data());
    return q.doorbell_mode == DoorbellMode::record && (!q.owns_register || users[facts.uar_pages[slot]] > 1);
  });
  if (bad.first == nullptr) return;
  const bool page_only = bad.first->owns_register;
  refusals.push_back(
      {"its ordering assumes that the NIC acts on a queue's own doorbells only (A2), and " + bad.text +
           " shares its register" + (page_only ? "'s page" : "") +
           ": the NIC looks at its record when others ring",
       std::string(page_only ? "Take" : "Set DeviceEndpointOptions::queues_a_register to 1, or take") +
           " an ordering that does not need A2 (gpu_fence_record or stronger), or queues of mode "
           "no_record"});
}

}  // namespace

std::vector<Refusal> find_refusals(const Requirements& requirements, const AdmissionFacts& facts) {
  std::vector<Refusal> refusals;
  check_modes(requirements, facts, refusals);
  if (requirements.own_memory) check_own_memory(facts, refusals);
  if (requirements.doorbell_only) check_doorbell_only(facts, refusals);
  // A PE alone, without queues to itself, has no queue that could be too small.
  const bool any_queue = std::any_of(facts.queues.begin(), facts.queues.end(),
                                     [](const SendQueue& q) { return q.state != nullptr; });
  if (any_queue && requirements.max_inline > facts.max_inline) {
    refusals.push_back(
        {"it puts " + std::to_string(requirements.max_inline) +
             " B into a WQE, and the queues of this endpoint take " + std::to_string(facts.max_inline) + " B",
         "Lower the policy's inline limit, or raise DeviceEndpointOptions::blocks (a WQE holds "
         "972 B at most)"});
  }
  return refusals;
}

}  // namespace belfry::host
