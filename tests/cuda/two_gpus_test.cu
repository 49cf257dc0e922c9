// PEs on two GPUs of one host: what a NIC does between them, over the software NIC's engines, one on each GPU
// or (BELFRY_SOFTNIC_GPU) one on either for both. Skipped with fewer than two GPUs.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "belfry/device/signal.hpp"
#include "conformance/kernels/atomics.hpp"
#include "conformance/kernels/policies.hpp"
#include "conformance/kernels/transfers.hpp"
#include "cuda/gpu_world.cuh"

namespace belfry::conformance {
namespace {

template <class PolicyType>
class TwoGpus : public ::testing::Test {
 protected:
  using Policy = PolicyType;
  using Endpoint = device::gda::Endpoint<Policy>;

  void SetUp() override {
    if (usable_gpus() < 2) GTEST_SKIP() << "fewer than two GPUs";
  }

  static host::DeviceEndpointOptions options() {
    host::DeviceEndpointOptions options;
    options.blocks = 64;
    options.connection.ack_timeout = 14;
    options.connection.retry_count = 2;
    return options;
  }
  static World make_world(const Places& places = on_gpus(0, 1)) {
    host::DeviceEndpointOptions chosen = options();
    chosen.max_message = kMaxMessage;
    return World(device::requirements_of<Policy>(), chosen, places);
  }
};

using SystemRecord = RecordOrdering<Ordering::system_release>;
using Policies =
    ::testing::Types<ExclusiveRecordCollapsed, ExclusiveNoRecordCollapsed, ExclusiveRecordRing, SystemRecord>;
TYPED_TEST_SUITE(TwoGpus, Policies);

/// Puts, with signals behind them, from `pe` to the other, on the GPU that `places` says.
template <class Endpoint>
void put_from(const World& world, std::uint32_t pe, int gpu) {
  for (const std::uint32_t window : {kData, kRelaxed}) {
    std::uint64_t end = 0;
    const std::vector<Transfer> all = transfers_into(window, end);
    const std::vector<std::byte> source = random_bytes(end + 64, window + pe);
    world.write(pe, {kData, 0}, source);
    world.write(1 - pe, {window, 0}, std::vector<std::byte>(end + 64, kGuard));
    const Shared<Transfer> transfers(all);
    const Shared<Report> reports(32);
    PutTransfers<Endpoint, device::Warp> kernel;
    kernel.view = world.view(pe);
    kernel.peer = 1 - pe;
    kernel.transfers = transfers.data();
    kernel.count = static_cast<std::uint32_t>(all.size());
    kernel.after = {{kSignals, 8}, window + 1, device::SignalOperation::set};
    kernel.reports = reports.data();
    launch(1, 32, kernel, gpu);
    expect_good(reports);
    std::vector<std::byte> image(end + 64, kGuard);
    for (const Transfer& t : all)
      std::memcpy(image.data() + t.remote.offset, source.data() + t.local.offset, t.bytes);
    EXPECT_TRUE(world.read(1 - pe, {window, 0}, image.size()) == image) << "window " << window;
    EXPECT_EQ(world.word(1 - pe, {kSignals, 8}), window + 1);
  }
}

// Fault: bytes that go to the wrong GPU, or that the other GPU does not see once it sees the signal's value.
TYPED_TEST(TwoGpus, PutsAndSignalsCross) {
  const World world = this->make_world();
  ASSERT_TRUE(world.ok());
  for (const std::uint32_t pe : {0u, 1u})
    put_from<typename TestFixture::Endpoint>(world, pe, static_cast<int>(pe));
}

// Fault: a READ of another GPU's memory whose completion comes before its bytes.
TYPED_TEST(TwoGpus, GetsCross) {
  const World world = this->make_world();
  ASSERT_TRUE(world.ok());
  for (const std::uint32_t pe : {0u, 1u}) {
    std::uint64_t end = 0;
    const std::vector<Transfer> all = transfers_into(kRelaxed, end);
    const std::vector<std::byte> source = random_bytes(end + 64, 5 + pe);
    world.write(1 - pe, {kRelaxed, 0}, source);
    world.write(pe, {kData, 0}, std::vector<std::byte>(end + 64, kGuard));
    const Shared<Transfer> transfers(all);
    const Shared<Report> reports(1);
    GetTransfers<typename TestFixture::Endpoint, device::Thread> kernel;
    kernel.view = world.view(pe);
    kernel.peer = 1 - pe;
    kernel.transfers = transfers.data();
    kernel.count = static_cast<std::uint32_t>(all.size());
    kernel.reports = reports.data();
    launch(1, 1, kernel, static_cast<int>(pe));
    expect_good(reports);
    std::vector<std::byte> image(end + 64, kGuard);
    for (const Transfer& t : all)
      std::memcpy(image.data() + t.local.offset, source.data() + t.remote.offset, t.bytes);
    EXPECT_TRUE(world.read(pe, {kData, 0}, image.size()) == image);
  }
}

// Fault: an atomic on another GPU's memory that is none, or whose old value is not there yet.
TYPED_TEST(TwoGpus, AtomicsCross) {
  const World world = this->make_world();
  ASSERT_TRUE(world.ok());
  for (const std::uint32_t pe : {0u, 1u}) {
    const Shared<Report> reports(1);
    LonelyAtomics<typename TestFixture::Endpoint, device::Thread> kernel;
    kernel.view = world.view(pe);
    kernel.peer = 1 - pe;
    kernel.word = {kSignals, 64};
    kernel.result = {kData, 512};
    kernel.reports = reports.data();
    launch(1, 1, kernel, static_cast<int>(pe));
    expect_good(reports);
  }
}

constexpr std::uint64_t kWords = 1024;  ///< 8 KiB of payload

/// Posts a payload of kWords of the round's number and a flag behind it, both by one doorbell, and waits
/// until the other GPU has looked.
template <class Endpoint>
struct PostRounds {
  typename Endpoint::View view;
  std::uint32_t peer = 1;
  std::uint64_t rounds = 0;
  const std::uint64_t* looked = nullptr;  ///< host memory: the round that the other GPU is done with
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    Report& report = reports[0];
    auto channel = Endpoint(view).channel(peer);
    auto* source = local_pointer<std::uint64_t>(view, {kData, 0});
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      for (std::uint64_t i = 0; i < kWords; ++i) source[i] = round;
      const device::Signal flag{{kSignals, 0}, round, device::SignalOperation::set};
      if (!report.note(round, channel.put_signal(device::Thread{}, {kData, 0}, {kData, 0},
                                                 kWords * sizeof(std::uint64_t), flag, kPatient)))
        return;
      port::Patience patience(kPatient);
      while (port::poll<port::Scope::system>(looked) < round)
        if (patience.is_over()) return static_cast<void>(report.check(round, false));
    }
    report.note(rounds + 1, channel.flush(device::Thread{}, kPatient));
  }
};

/// A warp of the other GPU: once it sees the flag, every word of the payload has to be the round's.
template <class View>
struct LookAtRounds {
  View view;
  std::uint64_t rounds = 0;
  std::uint64_t* looked = nullptr;
  Report* reports = nullptr;  ///< of 32 lanes; values[0]: words that were not there yet

  BELFRY_FN void operator()() const {
    const std::uint32_t lane = port::thread_index();
    Report& report = reports[lane];
    const auto* payload = local_pointer<const std::uint64_t>(view, {kData, 0});
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      if (!report.note(round, device::wait_signal(view, {kSignals, 0}, device::Compare::greater_equal, round,
                                                  kPatient)))
        return;
      std::uint64_t stale = 0;
      for (std::uint64_t i = kWords - 1 - lane; i < kWords; i -= 32)
        stale += port::load<port::Scope::system>(payload + i) != round;
      report.values[0] += stale;
      port::sync_warp(port::kFullWarp);
      if (lane == 0) port::store_release<port::Scope::system>(looked, round);
    }
  }
};

// Fault: a flag that overtakes its payload on the way to another GPU. A fence of GPU scope between the two
// lets it through about once in a thousand times.
TYPED_TEST(TwoGpus, AFlagComesBehindItsPayload) {
  constexpr std::uint64_t kTimes = 10'000;
  for (const std::uint32_t pe : {0u, 1u}) {
    const World world(device::requirements_of<TypeParam>(), this->options(), on_gpus(0, 1));
    ASSERT_TRUE(world.ok());
    const Shared<std::uint64_t> looked(1);
    const Shared<Report> posted(1);
    const Shared<Report> seen(32);
    LookAtRounds<device::EndpointView> look{world.view(1 - pe), kTimes, looked.data(), seen.data()};
    PostRounds<typename TestFixture::Endpoint> post;
    post.view = world.view(pe);
    post.peer = 1 - pe;
    post.rounds = kTimes;
    post.looked = looked.data();
    post.reports = posted.data();
    {
      const Running looks(static_cast<int>(1 - pe), 1, 32, look);
      const Running posts(static_cast<int>(pe), 1, 1, post);
    }
    expect_good(posted);
    expect_good(seen);
    for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(seen[lane].values[0], 0u) << "lane " << lane;
  }
}

// Fault: a GPU that needs another one: what lies on the second alone works, beside a pair on the first.
TYPED_TEST(TwoGpus, EitherServesItself) {
  const World first = this->make_world(on_gpus(0, 0));
  const World second = this->make_world(on_gpus(1, 1));
  ASSERT_TRUE(first.ok() && second.ok());
  put_from<typename TestFixture::Endpoint>(second, 0, 1);
  put_from<typename TestFixture::Endpoint>(first, 0, 0);
  put_from<typename TestFixture::Endpoint>(second, 1, 1);
}

// Fault: a payload in another GPU's memory under an ordering that rests on A1; and a system ordering that is
// refused for nothing.
TYPED_TEST(TwoGpus, PayloadOfAnotherGpuNeedsASystemOrdering) {
  Places places = on_gpus(0, 1);
  places.data[0] = 1;
  device::Requirements wanted = device::requirements_of<TypeParam>();
  const bool needs_own = wanted.own_memory;
  wanted.own_memory = false;
  host::DeviceEndpointOptions chosen = this->options();
  chosen.max_message = kMaxMessage;
  const World world(wanted, chosen, places);
  ASSERT_TRUE(world.ok());
  if (!needs_own) return put_from<typename TestFixture::Endpoint>(world, 0, 0);
  try {
    world.endpoint(0).admit(device::requirements_of<TypeParam>());
    FAIL() << "it was taken";
  } catch (const host::Error& error) {
    EXPECT_NE(error.message().find("window 0 lies in another GPU's memory"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace belfry::conformance
