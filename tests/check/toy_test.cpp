#include <gtest/gtest.h>

#include "check/toy_queue.hpp"

namespace belfry::check {
namespace {

using device::DoorbellMode;
using device::Ordering;

// Fault: an ordering that the design calls safe and that is not, or the other way round, in any mode,
// wherever the memory lies, with and without its assumptions.
TEST(ToyQueue, EachOrderingHoldsExactlyUnderItsAssumptions) {
  for (const Check& check : toy_checks()) {
    const Judgement j = judge(check, {});
    EXPECT_TRUE(j.as_expected) << check.scenario.name << '\n' << j.trace;
    EXPECT_EQ(j.found_by, "all of it") << check.scenario.name;
  }
}

// Fault: the classes that device/ordering.hpp gives its users say something else than the design.
TEST(ToyQueue, TheHeadersClassesAreTheDesigns) {
  for (int o = 0; o <= static_cast<int>(Ordering::system_fence); ++o) {
    for (DoorbellMode mode : {DoorbellMode::record, DoorbellMode::no_record}) {
      const auto ordering = static_cast<Ordering>(o);
      const bool safe = device::safety_of(ordering) != device::Safety::unsafe;
      ToyConfiguration c;
      c.ordering = ordering;
      c.mode = mode;
      EXPECT_EQ(safe, toy_is_safe(c));
      c.assumptions = {false, true};
      EXPECT_EQ(device::safety_of(ordering) == device::Safety::by_model, toy_is_safe(c));
      c.assumptions = {true, false};
      EXPECT_EQ(safe && !device::needs_doorbell_only(ordering, mode), toy_is_safe(c));
    }
  }
}

// Fault: a schedule that is printed does not lead to the same end again, or its trace does not say what went
// wrong where.
TEST(ToyQueue, AFailingScheduleReplaysAndNamesItsLines) {
  ToyConfiguration c;
  c.ordering = Ordering::gpu_fence;
  c.assumptions.doorbell_only = false;
  const Scenario scenario = toy_scenario(c);
  const Report report = explore_shortest(scenario);
  ASSERT_TRUE(report.violated);
  const std::string schedule = schedule_text(report.finding.schedule);
  const std::string trace = replay(scenario, parse_schedule(schedule));
  EXPECT_EQ(trace, replay(scenario, parse_schedule(schedule)));
  EXPECT_NE(trace.find("VIOLATED fetch_after_stores"), std::string::npos) << trace;
  EXPECT_NE(trace.find("; OLD: step"), std::string::npos) << trace;
  EXPECT_NE(trace.find("check/toy_queue.cpp:"), std::string::npos) << trace;
}

}  // namespace
}  // namespace belfry::check
