// The engine apart from any protocol: what it explores, what it reports, and what it refuses.

#include <gtest/gtest.h>

#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"
#include "check/explore.hpp"
#include "check/misuse.hpp"

namespace belfry::check {
namespace {

struct Words {
  std::uint64_t* x = nullptr;
  std::uint64_t* y = nullptr;
};

Words& words(World& world) {
  Words& w = world.keep<Words>();
  w.x = world.make<std::uint64_t>("x", 2, MemoryKind::gpu);
  w.y = world.make<std::uint64_t>("y", 2, MemoryKind::gpu);
  return w;
}

// Fault: a deadlock that is taken for the end, so that a lost wake-up passes.
TEST(Engine, AWaitThatNobodyEndsIsAViolation) {
  Scenario s;
  s.name = "waits for ever";
  s.build = [](World& world) {
    Words& w = words(world);
    world.add_agent("waiter", cpu_thread(), [&w] {
      while (port::poll<Scope::system>(w.x) != 2) {
      }
    });
    world.add_agent("other", cpu_thread(), [&w] { port::store<Scope::system>(w.x, std::uint64_t{1}); });
  };
  const Report report = explore(s);
  ASSERT_TRUE(report.violated);
  EXPECT_EQ(report.finding.violation.property, Property::waits_end);
  EXPECT_NE(report.finding.violation.text.find("waiter at tests/check/engine_test.cpp:"), std::string::npos)
      << report.finding.violation.text;
}

// Fault: a loop over two words is held up by the one that does not change while the other one does.
TEST(Engine, AWaitForEitherOfTwoWordsEnds) {
  Scenario s;
  s.name = "either of two";
  s.build = [](World& world) {
    Words& w = words(world);
    world.add_agent("waiter", cpu_thread(), [&w] {
      for (;;) {
        if (port::poll<Scope::system>(w.x) == 1) return;
        if (port::load<Scope::system>(w.y) == 1) return;
      }
    });
    world.add_agent("other", cpu_thread(), [&w] { port::store<Scope::system>(w.y, std::uint64_t{1}); });
  };
  const Report report = explore(s);
  EXPECT_TRUE(report.complete) << report.finding.violation.text;
}

// Fault: asking twice for what has been answered is taken for a wait.
TEST(Engine, AskingTwiceIsNotAWaitWithoutAnEnd) {
  Scenario s;
  s.name = "asks twice";
  s.build = [](World& world) {
    Words& w = words(world);
    world.add_agent("asker", cpu_thread(), [&w] {
      for (int i = 0; i < 2; ++i) port::poll<Scope::system>(w.x);
    });
  };
  EXPECT_TRUE(explore(s).complete);
}

// Fault: threads that meet at a barrier do not see what the others stored before it, or a vote orders memory.
TEST(Engine, BarriersOrderAndVotesDoNot) {
  for (const bool barrier : {true, false}) {
    Scenario s;
    s.name = "warp";
    s.build = [barrier](World& world) {
      Words& w = words(world);
      world.add_block("lane", 0, 0, 2, [&w, barrier] {
        const bool first = port::lane_index() == 0;
        if (first) port::store<Scope::block>(w.x, std::uint64_t{1});
        if (barrier) {
          port::sync_warp(port::warp_mask());
        } else {
          EXPECT_EQ(port::ballot(port::warp_mask(), !first), 2u);
        }
        if (!first)
          World::here().require(port::load<Scope::block>(w.x) == 1, Property::completion_implies_data,
                                "stale");
      });
    };
    EXPECT_EQ(explore(s).violated, !barrier);
  }
}

// Fault: a bound on deviations that explores what it excludes, or leaves out what it allows.
TEST(Engine, DeviationsAreBounded) {
  Scenario s;
  s.name = "two stale reads";
  s.build = [](World& world) {
    Words& w = words(world);
    world.add_agent("writer", cpu_thread(), [&w] {
      port::store<Scope::system>(w.x, std::uint64_t{1});
      port::store<Scope::system>(w.y, std::uint64_t{1});
    });
    world.add_agent("reader", cpu_thread(), [&w] {
      const bool stale = port::load<Scope::system>(w.x) == 0 && port::load<Scope::system>(w.y) == 0;
      World::here().require(!stale, Property::completion_implies_data, "both stale");
    });
  };
  Limits limits;
  limits.deviations = 1;
  EXPECT_TRUE(explore(s, limits).complete);
  limits.deviations = 2;
  EXPECT_TRUE(explore(s, limits).violated);
}

// Fault: a seed that finds a violation once and not again.
TEST(Engine, ASeedIsASchedule) {
  Scenario s;
  s.name = "message passing";
  s.build = [](World& world) {
    Words& w = words(world);
    world.add_agent("writer", gpu_thread(0, 0), [&w] {
      port::store<Scope::system>(w.x, std::uint64_t{1});
      port::store<Scope::system>(w.y, std::uint64_t{1});
    });
    world.add_agent("reader", cpu_thread(), [&w] {
      while (port::poll<Scope::system>(w.y) != 1) {
      }
      World::here().require(port::load<Scope::system>(w.x) == 1, Property::signal_implies_payload, "stale");
    });
  };
  Limits limits;
  limits.executions = 1000;
  const Report once = explore_random(s, 7, limits);
  const Report again = explore_random(s, 7, limits);
  ASSERT_TRUE(once.violated);
  EXPECT_EQ(schedule_text(once.finding.schedule), schedule_text(again.finding.schedule));
}

// Fault: a load that is delayed past a store that depends on it: a value out of thin air.
TEST(Engine, DelayedLoadsDoNotRestOnThemselves) {
  for (const bool depends : {true, false}) {
    bool both = false;
    Scenario s;
    s.name = "load buffering";
    s.settings.load_delay = true;
    s.build = [&both, depends](World& world) {
      Words& w = words(world);
      auto& seen = world.keep<std::array<std::uint64_t, 2>>();
      world.add_agent("one", cpu_thread(), [&] {
        seen[0] = port::load<Scope::system>(w.x);
        port::store<Scope::system>(w.y, depends ? seen[0] : std::uint64_t{1});
      });
      world.add_agent("two", cpu_thread(), [&] {
        seen[1] = port::load<Scope::system>(w.y);
        if (!depends || seen[1] == 1) port::store<Scope::system>(w.x, std::uint64_t{1});
      });
      world.at_end([&both, &seen] { both = both || (seen[0] == 1 && seen[1] == 1); });
    };
    EXPECT_TRUE(explore(s).complete);
    EXPECT_EQ(both, !depends);
  }
}

// Fault: 16 B of a WQE that are seen whole although nothing orders them.
TEST(Engine, TheHalvesOfASegmentAreSeenApart) {
  Scenario s;
  s.name = "halves";
  s.build = [](World& world) {
    Words& w = words(world);
    world.add_agent("writer", gpu_thread(0, 0), [&w] { port::store_segment(w.x, {1, 1}); });
    world.add_agent("reader", nic_port(), [&w] {
      const auto high = port::load<Scope::system>(w.x + 1);
      const auto low = port::load<Scope::system>(w.x);
      World::here().require(high == low, Property::fetch_after_stores, "torn");
    });
  };
  EXPECT_TRUE(explore(s).violated);
}

// Fault: a test that touches memory which nobody declared looks like one that passes.
TEST(Engine, UndeclaredMemoryIsRefused) {
  Scenario s;
  s.name = "undeclared";
  static std::uint64_t elsewhere = 0;
  s.build = [](World& world) {
    words(world);
    world.add_agent("lost", cpu_thread(), [] { port::load<Scope::system>(&elsewhere); });
  };
  EXPECT_THROW(explore(s), Misuse);
}

// Fault: a schedule of words and not of numbers is run as if it were one.
TEST(Engine, SchedulesAreRead) {
  EXPECT_EQ(schedule_text(parse_schedule("0.2.13")), "0.2.13");
  EXPECT_EQ(schedule_text(parse_schedule("0.2.13/4.7")), "0.2.13/4.7");
  EXPECT_EQ(schedule_text(parse_schedule("-/-")), "-/-");
  EXPECT_TRUE(parse_schedule("-").choices.empty());
  EXPECT_THROW(parse_schedule("0.x"), Misuse);
}

}  // namespace
}  // namespace belfry::check
