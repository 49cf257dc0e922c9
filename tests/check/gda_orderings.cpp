// The seven orderings through the headers that ship: wherever the memory lies, with and without A1 and A2.

#include "check/gda_checks.hpp"
#include "check/gda_policies.hpp"

namespace belfry::check {
namespace {

using device::DoorbellMode;
using device::Ordering;
using port::Step;

struct Configuration {
  Assumptions assumptions{true, true, true};
  bool assisted = false;
  device::MemoryKind blocks = device::MemoryKind::own, record = device::MemoryKind::own,
                     payload = device::MemoryKind::own, completions = device::MemoryKind::own;
};

const char* word(device::MemoryKind kind) { return kind == device::MemoryKind::host ? "host" : "peer"; }

std::string text(const Configuration& c) {
  std::string text;
  const auto add = [&text](const char* what, device::MemoryKind kind) {
    if (kind != device::MemoryKind::own) text += fmt::format(".{}_{}", what, word(kind));
  };
  add("blocks", c.blocks);
  add("record", c.record);
  add("payload", c.payload);
  add("completions", c.completions);
  if (c.assisted) text += ".assisted";
  if (!c.assumptions.past_cpu) text += ".a1_ends_at_cpu";
  if (!c.assumptions.own_memory) text += ".no_a1";
  if (!c.assumptions.doorbell_only) text += ".no_a2";
  return text;
}

/// With own memory every combination of the assumptions; elsewhere both taken.
std::vector<Configuration> configurations(DoorbellMode mode) {
  std::vector<Configuration> all;
  for (int bits = 0; bits < 4; ++bits) {
    Configuration c;
    c.assumptions = {(bits & 1) == 0, (bits & 2) == 0, true};
    all.push_back(c);
    c.assisted = true;
    all.push_back(c);
  }
  Configuration ends_at_cpu;
  ends_at_cpu.assisted = true;
  ends_at_cpu.assumptions.past_cpu = false;
  all.push_back(ends_at_cpu);
  for (device::MemoryKind kind : {device::MemoryKind::host, device::MemoryKind::peer}) {
    Configuration blocks, record, payload, completions;
    blocks.blocks = record.record = payload.payload = completions.completions = kind;
    all.push_back(blocks);
    if (mode == DoorbellMode::record) all.push_back(record);
    all.push_back(payload);
    all.push_back(completions);
  }
  return all;
}

/// What docs/ordering.md and device/ordering.hpp claim.
bool is_claimed(Ordering ordering, DoorbellMode mode, const Configuration& c) {
  if (device::safety_of(ordering) == device::Safety::unsafe) return false;
  const auto own = device::MemoryKind::own;
  const bool a1 = c.assumptions.own_memory && (!c.assisted || c.assumptions.past_cpu) && c.blocks == own &&
                  c.record == own && c.payload == own;
  return (!device::needs_own_memory(ordering) || a1) &&
         (!device::needs_doorbell_only(ordering, mode) || c.assumptions.doorbell_only);
}

template <Ordering ordering, DoorbellMode mode>
std::string ordering_and_mode() {
  return fmt::format("{}.{}", device::ordering_name(ordering),
                     mode == DoorbellMode::record ? "record" : "no_record");
}

/// One thread with two WRITEs: of the second a NIC may learn from the record, at the doorbell of the first.
template <Ordering ordering, DoorbellMode mode>
Scenario alone(const Configuration& c) {
  GdaSettings settings;
  settings.assisted = c.assisted;
  settings.blocks = c.blocks;
  settings.record = c.record;
  settings.payload = c.payload;
  settings.completions = c.completions;
  Scenario s = gda_writes<GdaPolicy<ordering, mode>>(ordering_and_mode<ordering, mode>() + text(c),
                                                     {{2}, !c.assisted, false}, settings);
  s.settings.assumptions = c.assumptions;
  return s;
}

/// Two threads: the doorbell of the second covers the first one's WQE.
template <Ordering ordering, DoorbellMode mode>
Scenario shared() {
  Scenario s = gda_writes<GdaPolicy<ordering, mode, device::Sharing::gpu>>(
      "handoff." + ordering_and_mode<ordering, mode>(), {{1, 1}, false, false});
  s.settings.assumptions.own_memory = device::needs_own_memory(ordering);
  s.settings.assumptions.doorbell_only = device::needs_doorbell_only(ordering, mode);
  return s;
}

template <Ordering ordering, DoorbellMode mode>
void add_checks(std::vector<Check>& checks) {
  for (const Configuration& c : configurations(mode)) {
    Check check;
    check.scenario = alone<ordering, mode>(c);
    check.holds = is_claimed(ordering, mode, c);
    checks.push_back(std::move(check));
  }
  Check check;
  check.scenario = shared<ordering, mode>();
  check.holds = ordering != Ordering::none;
  checks.push_back(std::move(check));
}

template <Ordering ordering, DoorbellMode mode>
void add_mutants(std::vector<Check>& checks) {
  if (ordering == Ordering::none) return;
  Configuration c;
  c.assumptions = {device::needs_own_memory(ordering), device::needs_doorbell_only(ordering, mode), true};
  const Scenario scenario = alone<ordering, mode>(c);
  if (mode == DoorbellMode::no_record) {
    checks.push_back(mutant_of(Step::order_wqe_before_doorbell, scenario));
    return;
  }
  checks.push_back(mutant_of(Step::order_record_before_doorbell, scenario));
  if (ordering != Ordering::gpu_fence) checks.push_back(mutant_of(Step::order_wqe_before_record, scenario));
}

template <class Use>
void for_each_ordering(const Use& use) {
  const auto both = [&use](auto ordering) {
    use(ordering, std::integral_constant<DoorbellMode, DoorbellMode::record>{});
    use(ordering, std::integral_constant<DoorbellMode, DoorbellMode::no_record>{});
  };
  both(std::integral_constant<Ordering, Ordering::none>{});
  both(std::integral_constant<Ordering, Ordering::gpu_fence>{});
  both(std::integral_constant<Ordering, Ordering::gpu_fence_record>{});
  both(std::integral_constant<Ordering, Ordering::gpu_release>{});
  both(std::integral_constant<Ordering, Ordering::threadfence>{});
  both(std::integral_constant<Ordering, Ordering::system_release>{});
  both(std::integral_constant<Ordering, Ordering::system_fence>{});
}

}  // namespace

std::vector<Check> gda_ordering_checks() {
  std::vector<Check> checks;
  for_each_ordering([&](auto ordering, auto mode) { add_checks<ordering.value, mode.value>(checks); });
  return checks;
}

std::vector<Check> gda_ordering_mutants() {
  std::vector<Check> mutants;
  for_each_ordering([&](auto ordering, auto mode) { add_mutants<ordering.value, mode.value>(mutants); });
  return mutants;
}

}  // namespace belfry::check
