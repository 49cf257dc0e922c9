#include "bench/target.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace belfry::bench {
namespace {

constexpr std::uint64_t kSeed = 5;

/// What `writes` writes leave, carried out one by one.
std::vector<std::byte> written(std::uint64_t writes) {
  std::vector<std::byte> target(kTargetBytes);
  clear_target(target);
  for (std::uint64_t i = 0; i < writes; ++i) {
    const std::uint64_t value = target_value(kSeed, i);
    std::memcpy(target.data() + target_offset(i), &value, sizeof value);
  }
  return target;
}

// Fault: the check is wrong around the first lap, and refuses what is right.
TEST(Target, AcceptsWhatWritesLeave) {
  for (const std::uint64_t writes : {std::uint64_t{0}, std::uint64_t{1}, kTargetSlots - 1, kTargetSlots,
                                     kTargetSlots + 1, 2 * kTargetSlots, 3 * kTargetSlots + 17}) {
    EXPECT_TRUE(target_is_right(written(writes), kSeed, writes)) << writes;
  }
}

// Fault: a check that cannot fail. One write too few or too many, a flipped bit, another seed, a torn guard.
TEST(Target, RefusesAnythingElse) {
  const std::uint64_t writes = 2 * kTargetSlots + 5;
  EXPECT_FALSE(target_is_right(written(writes), kSeed, writes + 1));
  EXPECT_FALSE(target_is_right(written(writes), kSeed, writes - 1));
  EXPECT_FALSE(target_is_right(written(writes), kSeed + 1, writes));
  for (std::size_t at = 0; at < kTargetBytes; at += 7) {
    auto target = written(writes);
    target[at] ^= std::byte{0x10};
    EXPECT_FALSE(target_is_right(target, kSeed, writes)) << at;
  }
  auto shorter = written(writes);
  shorter.pop_back();
  EXPECT_FALSE(target_is_right(shorter, kSeed, writes));
}

// Fault: a write that is lost, or lands twice, is not seen because its neighbour carries the same value.
TEST(Target, ValuesDifferAndAreNeverTheEmptySlot) {
  std::set<std::uint64_t> values;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const std::uint64_t value = target_value(kSeed, i);
    EXPECT_NE(value, 0u);
    EXPECT_TRUE(values.insert(value).second) << i;
  }
}

}  // namespace
}  // namespace belfry::bench
