#include <gtest/gtest.h>

#include "check/gda_checks.hpp"
#include "check/proxy_checks.hpp"

namespace belfry::check {
namespace {

void expect_as_said(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    if (check.is_long) continue;
    const Judgement j = judge(check, {});
    EXPECT_TRUE(j.as_expected) << check.scenario.name << '\n' << j.trace;
    EXPECT_EQ(j.found_by, "all of it") << check.scenario.name;
  }
}

// Fault: an ordering that is safe, by the model or by its assumptions, and loses data, or one that is said to
// need an assumption which it does not.
TEST(Gda, EachOrderingHoldsExactlyUnderItsAssumptions) { expect_as_said(gda_ordering_checks()); }

// Fault: a race in mini-gda, under any of its ways of sharing, of waiting and of failing.
TEST(Gda, ItsProtocolsHold) { expect_as_said(gda_checks()); }

// Fault: a race in mini-proxy, between its producers, its worker and the NIC.
TEST(Proxy, ItsProtocolsHold) { expect_as_said(proxy_checks()); }

}  // namespace
}  // namespace belfry::check
