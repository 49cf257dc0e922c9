#include <gmock/gmock.h>

#include <cstring>
#include <set>
#include <vector>

#include "bench/kernels/target_value.hpp"
#include "bench/published.hpp"
#include "bench/rate_shape.hpp"

namespace belfry::bench {
namespace {

using testing::HasSubstr;
using enum Cooperation;

std::string refusal(const RateShape& shape) {
  try {
    check(shape);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

// Fault: a shape that no kernel can run is launched, and waits for queues or lanes that do not exist.
TEST(RateShape, WhatNoKernelCanRunIsRefusedWithARemedy) {
  EXPECT_THAT(refusal({10, 10, 3, 1, thread}), HasSubstr("take a multiple"));
  EXPECT_THAT(refusal({2048, 1, 1, 1, handoff}), HasSubstr("raise --blocks"));
  EXPECT_THAT(refusal({4, 2, 1, 1, thread}), HasSubstr("--sharing thread"));
  EXPECT_THAT(refusal({4, 6, 1, 1, thread}), HasSubstr("--sharing thread"));
  EXPECT_THAT(refusal({4, 6, 1, 1, handoff}), HasSubstr("no more queues"));
  EXPECT_THAT(refusal({64, 3, 1, 32, warp}), HasSubstr("no more queues"));
  EXPECT_THAT(refusal({4, 1, 1, 2, lock}), HasSubstr("--batch 1"));
  EXPECT_THAT(refusal({40, 1, 1, 32, warp}), HasSubstr("multiples of 32"));
  EXPECT_THAT(refusal({32, 1, 1, 16, warp}), HasSubstr("multiples of 32"));
}

// Fault: an arm that its own check refuses, or that does not stand beside its published row.
TEST(RateShape, EveryArmRunsAndKnowsItsPublishedRow) {
  std::set<std::string> references;
  for (const RateArm& arm : rate_arms()) {
    EXPECT_EQ(refusal(arm.shape), "none") << arm.name;
    const std::string reference = arm.reference;
    if (reference.empty()) continue;
    references.insert(reference);
    const Record* row = find_published(reference, "rate", "P-IB");
    ASSERT_NE(row, nullptr) << reference;
    const RateShape& shape = arm.shape;
    EXPECT_EQ(*find(row->parameters, "threads"), Value(std::int64_t{shape.threads})) << arm.name;
    EXPECT_EQ(*find(row->parameters, "sms"), Value(std::int64_t{shape.blocks})) << arm.name;
    EXPECT_EQ(*find(row->parameters, "wqes_per_doorbell"), Value(std::int64_t{shape.batch})) << arm.name;
  }
  for (const Record& record : published_records()) {
    if (record.reference.starts_with("rate/mini-gda-")) {
      EXPECT_TRUE(references.contains(record.reference)) << "no arm for " << record.reference;
    }
  }
}

// Fault: the kernel of another kind of sharing: an exclusive one on a shared queue loses WQEs.
TEST(RateShape, TheKernelFollowsTheSharing) {
  EXPECT_FALSE((RateShape{32, 1, 1, 32, warp}).kind().queue_shared);
  EXPECT_TRUE((RateShape{64, 1, 1, 32, warp}).kind().queue_shared);
  EXPECT_FALSE((RateShape{64, 2, 2, 32, warp}).kind().queue_shared);
  EXPECT_TRUE((RateShape{4, 1, 2, 1, handoff}).kind().across_blocks);
  EXPECT_EQ((RateShape{80, 1, 2, 1, handoff}).warps(), 4u);
  EXPECT_EQ((RateShape{80, 1, 2, 1, handoff}).posters(), 80u);
}

class RateTarget : public testing::Test {
 protected:
  static constexpr std::uint32_t kThreads = 2;
  RateTarget() {
    job_.seed = 5;
    job_.target = {{0, 64}, 16, 4};
    job_.messages_a_thread = 10;
    window_.resize(64 + kThreads * 4 * 16);
    clear_rate_target(window_, job_, kThreads);
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      for (std::uint64_t i = 0; i < 10; ++i) write(thread, i, target_value(job_.seed + thread, i));
    }
  }
  void write(std::uint32_t thread, std::uint64_t i, std::uint64_t value) {
    std::memcpy(window_.data() + job_.target_of(thread, i).offset, &value, sizeof value);
  }
  bool is_right() const { return rate_target_is_right(window_, {}, job_, kThreads); }

  RateJob job_;
  std::vector<std::byte> window_;
};

// Fault: a payload that is missing, late, another thread's, or too long passes for right.
TEST_F(RateTarget, WhatIsNotRightIsSeen) {
  ASSERT_TRUE(is_right());
  write(1, 9, target_value(job_.seed + 1, 5));
  EXPECT_FALSE(is_right()) << "the message before";
  write(1, 9, target_value(job_.seed, 9));
  EXPECT_FALSE(is_right()) << "another thread's";
  write(1, 9, target_value(job_.seed + 1, 9));
  ASSERT_TRUE(is_right());
  window_[job_.target_of(0, 3).offset + 8] = std::byte{0};
  EXPECT_FALSE(is_right()) << "a byte beyond the payload";
}

// Fault: slots to which nothing was written are not looked at.
TEST_F(RateTarget, SlotsBeyondTheMessagesStayUntouched) {
  clear_rate_target(window_, job_, kThreads);
  job_.messages_a_thread = 1;
  write(0, 0, target_value(job_.seed, 0));
  write(1, 0, target_value(job_.seed + 1, 0));
  EXPECT_TRUE(is_right());
  write(1, 2, 1);
  EXPECT_FALSE(is_right());
}

// Fault: payload from memory is compared with something else than its source slot.
TEST_F(RateTarget, PayloadFromMemoryIsComparedWithItsSource) {
  std::vector<std::byte> source(64);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i);
  job_.source = {{0, 0}, 16, 4};
  job_.bytes = 12;
  clear_rate_target(window_, job_, kThreads);
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    for (std::uint64_t i = 0; i < 10; ++i) {
      std::memcpy(window_.data() + job_.target_of(thread, i).offset, source.data() + i % 4 * 16, 12);
    }
  }
  EXPECT_TRUE(rate_target_is_right(window_, source, job_, kThreads));
  source[16 + 11] = std::byte{0xff};
  EXPECT_FALSE(rate_target_is_right(window_, source, job_, kThreads));
}

}  // namespace
}  // namespace belfry::bench
