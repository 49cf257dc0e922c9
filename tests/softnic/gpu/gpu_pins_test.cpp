#include "softnic/gpu/gpu_pins.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace belfry::softnic {
namespace {

HostRange at(std::uintptr_t address, std::uint64_t bytes) {
  return {reinterpret_cast<void*>(address), bytes};
}

/// Pins as CUDA does: no page twice.
class FakeEngine final : public GpuEngine {
 public:
  bool reach(MemoryOwner, std::string&) override { return true; }
  Pinned pin(const HostRange& range) override {
    if (std::any_of(refused.begin(), refused.end(), [&](const auto& r) { return overlap(r, range); }))
      return Pinned::refused;
    if (std::any_of(theirs.begin(), theirs.end(), [&](const auto& r) { return overlap(r, range); }))
      return Pinned::theirs;
    EXPECT_FALSE(std::any_of(pinned.begin(), pinned.end(), [&](const auto& r) { return overlap(r, range); }));
    pinned.push_back(range);
    return Pinned::ours;
  }
  void unpin(const HostRange& range) override {
    EXPECT_NE(std::find(pinned.begin(), pinned.end(), range), pinned.end());
    std::erase(pinned, range);
  }
  bool update(std::span<const GpuQueuePair>, std::span<const MkeyEntry>, std::uint32_t) override {
    return true;
  }
  bool reset_completions(std::uint32_t) override { return true; }
  bool launch() override { return true; }
  bool running() override { return false; }
  bool stop() override { return true; }
  std::uint32_t attention() const override { return 0; }
  GpuProgress& progress(std::uint32_t) override { return progress_; }
  std::string error() const override { return "refused"; }

  std::vector<HostRange> pinned;
  std::vector<HostRange> theirs;
  std::vector<HostRange> refused;

 private:
  GpuProgress progress_;
};

// Fault: two regions of one page, of which the second cannot be pinned because the first is.
TEST(GpuPins, RegionsOfOnePageAreOneRange) {
  const auto joined =
      join_pages({at(0x10100, 0x100), at(0x10800, 0x1000), at(0x20000, 0x1000), at(0x30000, 0)});
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0], at(0x10000, 0x2000));
  EXPECT_EQ(joined[1], at(0x20000, 0x1000));
}

// Fault: memory that stays pinned after its region is gone, and what others pinned let go of.
TEST(GpuPins, LetsGoOfWhatItPinnedAndNoMore) {
  FakeEngine engine;
  engine.theirs = {at(0x40000, 0x1000)};
  GpuPins pins;
  EXPECT_TRUE(pins.update(engine, {at(0x10000, 0x1000), at(0x40000, 0x1000)}).empty());
  EXPECT_EQ(engine.pinned.size(), 1u);
  EXPECT_TRUE(pins.update(engine, {at(0x10000, 0x1000)}).empty());
  EXPECT_EQ(engine.pinned.size(), 1u);
  // A region grows into the next page, which is all that is new.
  EXPECT_TRUE(pins.update(engine, {at(0x10000, 0x1000), at(0x10800, 0x1000)}).empty());
  ASSERT_EQ(engine.pinned.size(), 2u);
  EXPECT_EQ(engine.pinned[1], at(0x11000, 0x1000));
  EXPECT_TRUE(pins.update(engine, {}).empty());
  EXPECT_TRUE(engine.pinned.empty());
}

// Fault: memory that is another's when it is named again, behind a pin of which a part was forgotten.
TEST(GpuPins, PinsAnewWhatIsLeftOfARegion) {
  FakeEngine engine;
  GpuPins pins;
  EXPECT_TRUE(pins.update(engine, {at(0x10000, 0x4000)}).empty());
  EXPECT_TRUE(pins.update(engine, {at(0x11000, 0x1000)}).empty());
  ASSERT_EQ(engine.pinned.size(), 1u);
  EXPECT_EQ(engine.pinned[0], at(0x11000, 0x1000));
}

// Fault: memory that one engine lets go of while another's kernel is at it, or that two want and CUDA pins
// once.
TEST(GpuPins, AreSharedByTheEngines) {
  FakeEngine first;
  FakeEngine second;
  GpuPins pins;
  EXPECT_TRUE(pins.update(first, {at(0x10000, 0x2000)}).empty());
  EXPECT_TRUE(pins.update(second, {at(0x11000, 0x2000)}).empty());
  ASSERT_EQ(first.pinned.size(), 1u);
  ASSERT_EQ(second.pinned.size(), 1u);
  EXPECT_EQ(second.pinned[0], at(0x12000, 0x1000)) << "the page in between is pinned";
  EXPECT_TRUE(pins.update(first, {}).empty());
  EXPECT_EQ(first.pinned.size(), 1u) << "the other engine uses its second page";
  second.pinned.push_back(first.pinned[0]);
  EXPECT_TRUE(pins.update(second, {}).empty());
  EXPECT_TRUE(second.pinned.empty());
}

// Fault: memory out of the GPU's reach that nobody hears of.
TEST(GpuPins, SaysWhatItCouldNotPin) {
  FakeEngine engine;
  engine.refused = {at(0x20000, 0x1000)};
  GpuPins pins;
  const auto refused = pins.update(engine, {at(0x10000, 0x1000), at(0x20010, 0x20)});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_TRUE(overlap(refused[0], at(0x20010, 0x20)));
}

}  // namespace
}  // namespace belfry::softnic
