/// \file
/// The callers of `residency`, on CPU lanes: what they compute.

#include "bench/kernels/residency.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "belfry/lanes/launch.hpp"

namespace belfry::bench {
namespace {

constexpr std::uint32_t kThreads = 64;
constexpr std::uint32_t kBlocks = 2;

using Channel = device::gda::Channel<device::DefaultPolicy>;

template <Caller caller, std::uint32_t live, class Talk>
std::vector<float> outcome(const ResidencyWork& given) {
  std::vector<float> output(kThreads * kBlocks);
  ResidencyKernel<caller, live, Talk> kernel;
  kernel.work = given;
  kernel.work.output = output.data();
  lanes::launch({kBlocks, kThreads}, {}, kernel);
  return output;
}

// Fault: a slice is read twice or not at all, or a thread reads another one's.
TEST(ResidencyCaller, StreamingAddsUpItsSlices) {
  constexpr std::uint32_t kSlices = 4, kLive = 8, kAll = kThreads * kBlocks;
  std::vector<FourFloats> input(kSlices * kLive / 4 * kAll);
  for (std::size_t i = 0; i < input.size(); ++i) {
    const auto value = static_cast<float>(i % 97);
    input[i] = {value, value + 1, value + 2, value + 3};
  }
  // 6 rounds over 4 slices: the first two come again.
  const std::vector<float> output = outcome<Caller::streaming, kLive, NoTalk>(
      {.input = input.data(), .slices = kSlices, .rounds = 3, .messages = 2});
  for (std::uint32_t thread = 0; thread < kAll; ++thread) {
    float expected = 0;
    for (std::uint32_t round = 0; round < 6; ++round) {
      for (std::uint32_t i = 0; i < kLive / 4; ++i) {
        const FourFloats four = input[(round % kSlices * (kLive / 4) + i) * kAll + thread];
        const auto weight = static_cast<float>(4 * i);
        expected +=
            four.x * (weight + 1) + four.y * (weight + 2) + four.z * (weight + 3) + four.w * (weight + 4);
      }
    }
    ASSERT_EQ(output[thread], expected) << thread;
  }
}

// Fault: code that sends changes what the caller computes, or runs although the kernel has nothing to send
// (it would find no queue here).
TEST(ResidencyCaller, DormantCommunicationChangesNothing) {
  const ResidencyWork work{.factor = 0.99f, .rounds = 10, .messages = 3};
  const std::vector<float> alone = outcome<Caller::compute, 8, NoTalk>(work);
  EXPECT_EQ(alone, (outcome<Caller::compute, 8, Talk<Channel, Call::inlined, true>>(work)));
  EXPECT_EQ(alone, (outcome<Caller::compute, 8, Talk<Channel, Call::separate, false>>(work)));
  EXPECT_NE(alone, (outcome<Caller::compute, 8, NoTalk>({.factor = 0.99f, .rounds = 9, .messages = 3})));
}

}  // namespace
}  // namespace belfry::bench
