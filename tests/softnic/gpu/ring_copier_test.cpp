// The copier's ring with its kernel on CPU lanes, and what its host side does where there is no kernel to
// answer.

#include "softnic/gpu/ring_copier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "softnic/gpu/lanes_copier.hpp"

namespace belfry::softnic {
namespace {

using namespace std::chrono_literals;
using test::CountedCopier;
using test::LanesKernel;

constexpr std::uint32_t kLengths[] = {1,  2,  3,  4,  7,   8,    9,    16,   55,    56,
                                      57, 63, 64, 65, 100, 2047, 2048, 2049, 65'536};

RingCopierOptions patient() {
  RingCopierOptions options;
  options.idle = 10s;  // between two copies; the kernel has its own
  options.stay = 10s;
  options.slow = 10s;  // lanes are
  options.admission = 10s;
  return options;
}

class RingCopierOn : public ::testing::Test {
 protected:
  explicit RingCopierOn(const RingCopierOptions& options = patient())
      : copies(new CountedCopier),
        kernel(new LanesKernel),
        copier(std::unique_ptr<GpuCopier>(copies), std::unique_ptr<GpuCopierKernel>(kernel), options),
        gpu(1 << 20) {
    std::minstd_rand random(7);
    for (unsigned char& byte : data) byte = static_cast<unsigned char>(random() >> 8);
  }

  bool add(std::uint64_t value, std::uint64_t* former, std::size_t at = 0) {
    AtomicOperands o;
    o.swap_or_add = value;
    return copier.update(gpu.data() + at, wire::WqeOpcode::atomic_fetch_add, o, former);
  }
  /// Until the kernel serves: an atomic waits for it.
  void wake() {
    std::uint64_t former;
    ASSERT_TRUE(add(0, &former));
    ASSERT_TRUE(add(0, &former));
    ASSERT_GT(copier.served(), 0u);
    copies->copies = 0;
  }
  void upload(std::size_t to, std::uint32_t bytes) {
    std::memcpy(copier.staging(), data.data(), bytes);
    ASSERT_TRUE(copier.to_gpu(gpu.data() + to, copier.staging(), bytes));
  }
  bool holds(std::size_t at, std::uint32_t bytes) const {
    return std::memcmp(gpu.data() + at, data.data(), bytes) == 0;
  }

  CountedCopier* copies;
  LanesKernel* kernel;
  RingCopier copier;
  std::vector<unsigned char> gpu;
  std::vector<unsigned char> data = std::vector<unsigned char>(1 << 17);
};

// Fault: a length or alignment of which a command moves other bytes, in any direction.
TEST_F(RingCopierOn, EveryLengthArrivesInEveryDirection) {
  wake();
  for (const std::uint32_t bytes : kLengths) {
    for (const std::size_t shift : {0u, 1u, 4u, 8u}) {
      std::fill(gpu.begin(), gpu.end(), 0xee);
      upload(4096 + shift, bytes);
      ASSERT_TRUE(holds(4096 + shift, bytes)) << bytes << " at " << shift;
      EXPECT_EQ(gpu[4095 + shift], 0xee);
      EXPECT_EQ(gpu[4096 + shift + bytes], 0xee) << bytes << " at " << shift;
      ASSERT_TRUE(copier.between(gpu.data() + 300'000, gpu.data() + 4096 + shift, bytes));
      ASSERT_TRUE(holds(300'000, bytes)) << bytes << " at " << shift;
      EXPECT_EQ(gpu[299'999], 0xee);
      EXPECT_EQ(gpu[300'000 + bytes], 0xee);
      std::memset(copier.staging(), 0, bytes + 1);
      ASSERT_TRUE(copier.from_gpu(copier.staging(), gpu.data() + 4096 + shift, bytes));
      ASSERT_EQ(std::memcmp(copier.staging(), data.data(), bytes), 0) << bytes << " at " << shift;
      EXPECT_EQ(copier.staging()[bytes], 0);
    }
  }
  EXPECT_EQ(copies->copies, 0u) << "not by the kernel";
}

// Fault: a slot that is used again too early or taken for an older command's.
TEST_F(RingCopierOn, CommandsGoRoundTheRing) {
  wake();
  std::uint64_t former = 0;
  for (std::uint64_t i = 0; i < 40 * kCopySlots; ++i) {
    ASSERT_TRUE(add(3, &former));
    ASSERT_EQ(former, 3 * i);
  }
  EXPECT_EQ(copies->copies, 0u);
}

// Fault: an atomic of 4 B that touches what is beside it, or a compare that swaps regardless.
TEST_F(RingCopierOn, AtomicsOfEitherWidth) {
  wake();
  AtomicOperands o;
  o.bytes = 4;
  o.swap_or_add = 1;
  std::fill_n(gpu.begin(), 8, 0xff);
  std::uint64_t former = 0;
  ASSERT_TRUE(copier.update(gpu.data(), wire::WqeOpcode::atomic_fetch_add, o, &former));
  EXPECT_EQ(former, 0xffffffffu);
  EXPECT_EQ(gpu[0], 0);
  EXPECT_EQ(gpu[4], 0xff);
  o = {.swap_or_add = 5, .compare = 9, .swap_mask = ~0ull, .compare_mask = ~0ull};
  std::fill_n(gpu.begin(), 8, 0);
  ASSERT_TRUE(copier.update(gpu.data(), wire::WqeOpcode::atomic_compare_swap, o, &former));
  EXPECT_EQ(gpu[0], 0);
  o.compare = 0;
  ASSERT_TRUE(copier.update(gpu.data(), wire::WqeOpcode::atomic_compare_swap, o, &former));
  EXPECT_EQ(former, 0u);
  EXPECT_EQ(gpu[0], 5);
}

// Fault: an update by the kernel that loses those of others.
TEST_F(RingCopierOn, AtomicsAreSoTowardsOthers) {
  wake();
  constexpr std::uint64_t kEach = 500;
  std::thread other([&] {
    auto& word = *reinterpret_cast<std::uint64_t*>(gpu.data());
    for (std::uint64_t i = 0; i < kEach; ++i) std::atomic_ref(word).fetch_add(1);
  });
  std::uint64_t former = 0;
  for (std::uint64_t i = 0; i < kEach; ++i) ASSERT_TRUE(add(1, &former));
  other.join();
  ASSERT_TRUE(add(0, &former));
  EXPECT_EQ(former, 2 * kEach);
}

// Fault: a command that is lost, or carried out twice, where the kernel leaves as it comes.
TEST_F(RingCopierOn, TheKernelLeavesAndIsStartedAgain) {
  kernel->idle_ns = 5'000'000;
  std::uint64_t former = 0;
  for (std::uint64_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(add(1, &former));
    ASSERT_EQ(former, i);
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 4 * 3));
  }
  EXPECT_GT(kernel->launches, 1u);
}

// Fault: memory that was freed and is handed to a kernel, which would take all of CUDA with it.
TEST_F(RingCopierOn, WhatIsGoneGoesToCuda) {
  wake();
  const std::uint64_t served = copier.served();
  copies->gone = true;
  EXPECT_FALSE(copier.to_gpu(gpu.data(), copier.staging(), 8));
  EXPECT_FALSE(copier.from_gpu(copier.staging(), gpu.data(), 8));
  EXPECT_FALSE(copier.between(gpu.data() + 64, gpu.data(), 8));
  std::uint64_t former;
  EXPECT_FALSE(add(1, &former));
  EXPECT_EQ(copier.served(), served);
  EXPECT_EQ(copier.error(), "the memory is gone");
}

class HastyRingCopier : public RingCopierOn {
 protected:
  static RingCopierOptions hasty() {
    RingCopierOptions options = patient();
    options.admission = 5ms;
    options.answer = 20ms;
    return options;
  }
  HastyRingCopier() : RingCopierOn(hasty()) {}
};

// Fault: a copy that waits for a kernel which a full GPU does not admit.
TEST_F(HastyRingCopier, AFullGpuIsCopiedByCuda) {
  kernel->mood = LanesKernel::Mood::is_full;
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < 20; ++i) {
    upload(i * 100, 100);
    EXPECT_TRUE(holds(i * 100, 100));
  }
  std::uint64_t former = 1;
  ASSERT_TRUE(add(2, &former, 8192));  // waits, and no longer than it may
  EXPECT_EQ(former, 0u);
  EXPECT_EQ(gpu[8192], 2);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_EQ(kernel->launches, 1u);
  EXPECT_EQ(copies->copies, 22u);
  EXPECT_EQ(copier.served(), 0u);
}

// Fault: the same of a kernel that failed after it had begun.
TEST_F(HastyRingCopier, WhatADeadKernelDidNotCudaDoes) {
  kernel->mood = LanesKernel::Mood::dies;
  for (unsigned i = 0; i < 5; ++i) upload(i * 8, 8);
  EXPECT_TRUE(holds(0, 8));
  EXPECT_EQ(copier.served(), 0u);
  EXPECT_EQ(copies->copies, 5u);
}

// Fault: a command that CUDA carries out while a kernel that hangs may still do so, later than what follows.
TEST_F(HastyRingCopier, WhatHangsFailsItsQueue) {
  kernel->mood = LanesKernel::Mood::hangs;
  upload(0, 8);
  EXPECT_FALSE(copier.to_gpu(gpu.data(), copier.staging(), 8));
  EXPECT_FALSE(copier.from_gpu(copier.staging(), gpu.data(), 8));
  EXPECT_NE(copier.error().find("did not answer"), std::string::npos);
}

class SlowRingCopier : public RingCopierOn {
 protected:
  static RingCopierOptions strict() {
    RingCopierOptions options = patient();
    options.slow = 1ns;
    options.rest = 1h;
    return options;
  }
  SlowRingCopier() : RingCopierOn(strict()) {}
};

// Fault: a kernel that shares the GPU's time with another process's, and whose every turn is waited for.
TEST_F(SlowRingCopier, RestsAfterASlowAnswer) {
  std::uint64_t former = 0;
  ASSERT_TRUE(add(1, &former));
  for (unsigned i = 0; i < 10; ++i) upload(64, 8);
  EXPECT_EQ(copier.served(), 1u);
  EXPECT_EQ(copies->copies, 10u);
}

// Fault: a program with few copies that pays a launch for each.
TEST(RingCopier, StartsOnlyWhereCopiesComeOften) {
  auto kernel = std::make_unique<LanesKernel>();
  const LanesKernel& seen = *kernel;
  RingCopierOptions options;
  options.idle = 1us;
  RingCopier copier(std::make_unique<CountedCopier>(), std::move(kernel), options);
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(copier.to_gpu(&word, copier.staging(), 8));
  }
  EXPECT_EQ(seen.launches, 0u);
}

}  // namespace
}  // namespace belfry::softnic
