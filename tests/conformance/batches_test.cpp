// Many operations with one doorbell: a warp's lanes together, and batches that are announced later.

#include "conformance/kernels/batches.hpp"

#include <cstring>

#include "conformance/configurations.hpp"
#include "conformance/kernels/each.hpp"

namespace belfry::conformance {
namespace {

constexpr Place kDone{kSignals, 8};

template <class Configuration>
class Together : public Case<Configuration> {};
TYPED_TEST_SUITE(Together, SharingConfigurations, ConfigurationNames);

/// Full and partial masks; equal and mixed sizes, with WQEs of one to four blocks when they are inlined.
const std::vector<EachRound> kRounds = {
    {port::kFullWarp, 8, 0}, {port::kFullWarp, 0, 7},  {0x00000001, 64, 0}, {0x80000000, 100, 3},
    {0xaaaaaaaa, 1, 5},      {0x0000ffff, 200, 1},     {0xffff0000, 0, 0},  {0x80000001, 12, 6},
    {0x13579bdf, 44, 4},     {port::kFullWarp, 16, 6}, {0x0ff00ff0, 0, 6},  {port::kFullWarp, 0, 0},
};

/// The largest inline put of a lane takes 4 blocks, so a warp's take 128 at most.
WorldOptions deep_queues(std::uint32_t blocks) {
  WorldOptions options;
  options.endpoint.blocks = blocks;
  return options;
}

// Fault: a lane's slots counted wrongly where sizes differ, or lanes are missing; a lane's arguments used for
// another; a completion that covers a part of them.
TYPED_TEST(Together, EachLanePutsItsOwn) {
  auto world = this->make_world(deep_queues(256));
  ASSERT_TRUE(world.ok());
  constexpr std::uint64_t kStride = 256;
  const std::size_t used = kRounds.size() * port::kWarpSize * kStride;
  for (std::size_t i = 0; i < used; ++i)
    *world.bytes(0, {kData, i}) = static_cast<std::byte>(i * 37 + (i >> 8));
  std::memset(world.bytes(1, {kData, 0}), 0xee, used);
  Array<EachRound> rounds(kRounds);
  Array<Report> reports(port::kWarpSize);
  using Kernel = PutEach<typename TypeParam::Endpoint>;
  Kernel kernel;
  kernel.view = world.view(0);
  kernel.base = {kData, 0};
  kernel.stride = kStride;
  kernel.rounds = rounds.data();
  kernel.count = static_cast<std::uint32_t>(rounds.size());
  kernel.after = {kDone, 1, device::SignalOperation::add};
  kernel.reports = reports.data();
  Runner::launch({1, 32}, kernel);
  EXPECT_TRUE(all_good(reports));
  world.await(1, kDone, 1);

  std::vector<std::byte> image(used, std::byte{0xee});
  for (std::uint32_t r = 0; r < rounds.size(); ++r) {
    for (std::uint32_t lane = 0; lane < port::kWarpSize; ++lane) {
      if ((rounds[r].mask >> lane & 1u) == 0) continue;
      const std::size_t at = (std::size_t{r} * port::kWarpSize + lane) * kStride;
      std::memcpy(image.data() + at, world.bytes(0, {kData, at}),
                  rounds[r].base_bytes + rounds[r].step_bytes * lane);
      const std::uint64_t value = Kernel::value_of(r, lane);
      std::memcpy(image.data() + at + kStride - 8, &value, 8);
    }
  }
  for (std::size_t i = 0; i < used; ++i)
    ASSERT_EQ(*world.bytes(1, {kData, i}), image[i])
        << "round " << i / kStride / 32 << " lane " << i / kStride % 32 << " byte " << i % kStride;
}

// Fault: a flush that does not announce, or waits for the wrong WQE; a NOP too many where nothing is owed; a
// batch longer than the queue, of which nobody tells the NIC.
TYPED_TEST(Together, BatchesAreAnnouncedByWhatComesLater) {
  for (const std::uint32_t batch : {1u, 3u, 15u, 16u, 17u, 100u}) {
    auto world = this->make_world(deep_queues(32));
    ASSERT_TRUE(world.ok());
    Array<Report> reports(1);
    using Kernel = Batches<typename TypeParam::Endpoint>;
    Kernel kernel;
    kernel.view = world.view(0);
    kernel.words = {kData, 0};
    kernel.batch = batch;
    kernel.count = 24;
    kernel.after = {kDone, 1, device::SignalOperation::set};
    kernel.reports = reports.data();
    Runner::launch({1, 1}, kernel);
    EXPECT_TRUE(all_good(reports)) << "batches of " << batch;
    world.await(1, kDone, 1);
    for (std::uint64_t i = 0; i < std::uint64_t{batch} * kernel.count; ++i)
      ASSERT_EQ(world.word(1, {kData, i * 8}), Kernel::value_of(i))
          << "batches of " << batch << ", put " << i;
  }
}

}  // namespace
}  // namespace belfry::conformance
