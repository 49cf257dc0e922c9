// Read-modify-writes of the shim from many lanes of many warps at once. Fault that all guard against: a host
// version made of a load and a store, which loses what others write in between.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"

namespace belfry::lanes {
namespace {

using port::Order;
using port::Scope;

constexpr Grid kGrid{4, 128};
constexpr std::uint64_t kThreads = std::uint64_t{kGrid.blocks} * kGrid.threads;
constexpr std::uint64_t kRounds = 2000;

template <class T>
class Atomics : public ::testing::Test {};
using Widths = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Atomics, Widths);

std::uint64_t thread_of_grid() {
  return std::uint64_t{port::block_index()} * kGrid.threads + port::thread_index();
}

/// Now and then, so that lanes of a warp change places between the others' accesses.
void shake(std::uint64_t round) {
  if ((round + port::lane_index()) % 16 == 0) port::pause_lane();
}

TYPED_TEST(Atomics, FetchAddLosesNothing) {
  TypeParam sum = 0, upper = static_cast<TypeParam>(~TypeParam{0});
  launch(kGrid, {}, [&sum, &upper] {
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      port::fetch_add<Scope::gpu>(&sum, TypeParam{3});
      port::fetch_add<Scope::system, Order::acquire_release>(&upper, static_cast<TypeParam>(~TypeParam{0}));
      shake(round);
    }
  });
  EXPECT_EQ(sum, static_cast<TypeParam>(3 * kThreads * kRounds));
  // Adding -1 goes down, through the whole width.
  EXPECT_EQ(upper, static_cast<TypeParam>(~TypeParam{0} - kThreads * kRounds));
}

TYPED_TEST(Atomics, FetchAddGivesEachValueOnce) {
  TypeParam next = 0;
  std::vector<std::uint8_t> taken(kThreads * 50);
  std::uint8_t* const all = taken.data();
  std::uint32_t outside = 0;
  launch(kGrid, {}, [&next, all, &outside] {
    for (std::uint64_t round = 0; round < 50; ++round) {
      const TypeParam ticket = port::fetch_add<Scope::gpu>(&next, TypeParam{1});
      if (ticket < kThreads * 50) {
        all[ticket] = static_cast<std::uint8_t>(all[ticket] + 1);  // plain: nobody else has this ticket
      } else {
        port::fetch_add<Scope::gpu>(&outside, 1u);
      }
      shake(round);
    }
  });
  EXPECT_EQ(outside, 0u);
  for (const std::uint8_t times : taken) ASSERT_EQ(times, 1);
}

TYPED_TEST(Atomics, FetchMaxKeepsTheLargestAndNeverGoesBack) {
  const TypeParam above = static_cast<TypeParam>(TypeParam{1} << (8 * sizeof(TypeParam) - 1));
  TypeParam most = 0;
  std::uint32_t fell = 0;
  launch(kGrid, {}, [&most, &fell, above] {
    TypeParam last = 0;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      // Above half of the range: a comparison of signed values would get them wrong.
      const TypeParam mine = static_cast<TypeParam>(above + round * kThreads + thread_of_grid());
      const TypeParam before = port::fetch_max<Scope::gpu>(&most, mine);
      if (before < last) port::fetch_add<Scope::gpu>(&fell, 1u);
      last = mine > before ? mine : before;
      shake(round);
    }
  });
  EXPECT_EQ(fell, 0u);
  EXPECT_EQ(most, static_cast<TypeParam>(above + kRounds * kThreads - 1));
}

TYPED_TEST(Atomics, CompareExchangeLetsOneThrough) {
  TypeParam sum = 0;
  std::uint64_t failures = 0;
  launch(kGrid, {}, [&sum, &failures] {
    for (std::uint64_t round = 0; round < kRounds / 4; ++round) {
      TypeParam seen = port::load<Scope::gpu>(&sum);
      for (;;) {
        const TypeParam before = port::compare_exchange<Scope::gpu, Order::acquire_release>(
            &sum, seen, static_cast<TypeParam>(seen + 7));
        if (before == seen) break;
        port::fetch_add<Scope::gpu>(&failures, std::uint64_t{1});
        seen = before;
      }
      shake(round);
    }
  });
  EXPECT_EQ(sum, static_cast<TypeParam>(7 * kThreads * (kRounds / 4)));
  this->RecordProperty("failed_exchanges", std::to_string(failures));
}

TYPED_TEST(Atomics, ExchangeHandsEachValueOnOnce) {
  // Values are put in and taken out: what is taken out in the end, and what remains, is what was put in.
  TypeParam slot = 0;
  std::uint64_t put = 0, taken = 0;
  launch(kGrid, {}, [&slot, &put, &taken] {
    std::uint64_t mine_put = 0, mine_taken = 0;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const TypeParam value = static_cast<TypeParam>(round * kThreads + thread_of_grid() + 1);
      mine_put += value;
      mine_taken += port::exchange<Scope::gpu>(&slot, value);
      shake(round);
    }
    port::fetch_add<Scope::gpu>(&put, mine_put);
    port::fetch_add<Scope::gpu>(&taken, mine_taken);
  });
  EXPECT_EQ(put, taken + slot);
}

}  // namespace
}  // namespace belfry::lanes
