// The device API on a GPU over the software NIC's GPU engine: the cases of tests/conformance that prove what
// a NIC does, with queues and windows in GPU memory. Skipped where there is no GPU.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "belfry/device/fault.hpp"
#include "conformance/kernels/atomics.hpp"
#include "conformance/kernels/faults.hpp"
#include "conformance/kernels/policies.hpp"
#include "conformance/kernels/transfers.hpp"
#include "conformance/kernels/values.hpp"
#include "cuda/gpu_world.cuh"

namespace belfry::conformance {
namespace {

using device::Fault;
using device::Place;
using wire::Syndrome;

template <class PolicyType>
class GpuConformance : public ::testing::Test {
 protected:
  using Policy = PolicyType;
  using Endpoint = device::gda::Endpoint<Policy>;

  void SetUp() override {
    if (usable_gpus() == 0) GTEST_SKIP() << "no GPU";
  }

  static host::DeviceEndpointOptions options() {
    host::DeviceEndpointOptions options;
    options.blocks = 64;
    options.max_message = kMaxMessage;
    options.connection.ack_timeout = 14;
    options.connection.retry_count = 2;
    return options;
  }
  static World make_world(const host::DeviceEndpointOptions& chosen = options()) {
    return World(device::requirements_of<Policy>(), chosen);
  }
};

using Policies = ::testing::Types<ExclusiveRecordRing, ExclusiveRecordCollapsed, ExclusiveNoRecordCollapsed,
                                  GpuHandoffRing>;
TYPED_TEST_SUITE(GpuConformance, Policies);

// Fault: a length, alignment or WQE form that the engine moves wrongly, or a signal ahead of its payload.
TYPED_TEST(GpuConformance, PutsOfEveryLengthArrive) {
  const World world = this->make_world();
  ASSERT_TRUE(world.ok());
  for (const std::uint32_t window : {kData, kRelaxed}) {
    std::uint64_t end = 0;
    const std::vector<Transfer> all = transfers_into(window, end);
    const std::vector<std::byte> source = random_bytes(end + 64, window);
    world.write(0, {kData, 0}, source);
    world.write(1, {window, 0}, std::vector<std::byte>(end + 64, kGuard));
    const Shared<Transfer> transfers(all);
    const Shared<Report> reports(32);
    PutTransfers<typename TestFixture::Endpoint, device::Warp> kernel;
    kernel.view = world.view(0);
    kernel.transfers = transfers.data();
    kernel.count = static_cast<std::uint32_t>(all.size());
    kernel.after = {{kSignals, 8}, window + 1, device::SignalOperation::set};
    kernel.reports = reports.data();
    launch(1, 32, kernel);
    expect_good(reports);
    std::vector<std::byte> image(end + 64, kGuard);
    for (const Transfer& t : all)
      std::memcpy(image.data() + t.remote.offset, source.data() + t.local.offset, t.bytes);
    EXPECT_TRUE(world.read(1, {window, 0}, image.size()) == image) << "window " << window;
    EXPECT_EQ(world.word(1, {kSignals, 8}), window + 1);
  }
}

// Fault: a READ that brings other bytes, or completes before they are there.
TYPED_TEST(GpuConformance, GetsOfEveryLengthArrive) {
  const World world = this->make_world();
  ASSERT_TRUE(world.ok());
  std::uint64_t end = 0;
  const std::vector<Transfer> all = transfers_into(kRelaxed, end);
  const std::vector<std::byte> source = random_bytes(end + 64, 5);
  world.write(1, {kRelaxed, 0}, source);
  world.write(0, {kData, 0}, std::vector<std::byte>(end + 64, kGuard));
  const Shared<Transfer> transfers(all);
  const Shared<Report> reports(1);
  GetTransfers<typename TestFixture::Endpoint, device::Thread> kernel;
  kernel.view = world.view(0);
  kernel.transfers = transfers.data();
  kernel.count = static_cast<std::uint32_t>(all.size());
  kernel.reports = reports.data();
  launch(1, 1, kernel);
  expect_good(reports);
  std::vector<std::byte> image(end + 64, kGuard);
  for (const Transfer& t : all)
    std::memcpy(image.data() + t.local.offset, source.data() + t.remote.offset, t.bytes);
  EXPECT_TRUE(world.read(0, {kData, 0}, image.size()) == image);
}

// Fault: a wrong result or a wrong old value of an atomic.
TYPED_TEST(GpuConformance, AtomicsReturnWhatWasThere) {
  const World world = this->make_world();
  ASSERT_TRUE(world.ok());
  const Shared<Report> reports(1);
  LonelyAtomics<typename TestFixture::Endpoint, device::Thread> kernel;
  kernel.view = world.view(0);
  kernel.word = {kSignals, 64};
  kernel.result = {kData, 512};
  kernel.reports = reports.data();
  launch(1, 1, kernel);
  expect_good(reports);
}

// Fault: values of 1 to 8 B that touch their neighbours.
TYPED_TEST(GpuConformance, ValuesTouchTheirBytesOnly) {
  const World world = this->make_world();
  ASSERT_TRUE(world.ok());
  world.write(1, {kData, 0}, std::vector<std::byte>(kValueSlots * kValueSlotBytes, kGuard));
  const Shared<Report> reports(40);
  PutValues<typename TestFixture::Endpoint> kernel;
  kernel.view = world.view(0);
  kernel.remote = {kData, 0};
  kernel.after = {{kSignals, 8}, 1, device::SignalOperation::add};
  kernel.reports = reports.data();
  launch(1, 40, kernel);
  expect_good(reports);
  std::vector<std::byte> image(kValueSlots * kValueSlotBytes, kGuard);
  const auto set = [&image](ValueSlot slot, auto value) {
    std::memcpy(image.data() + slot * kValueSlotBytes, &value, sizeof value);
  };
  set(kU8, kValueU8);
  set(kU16, kValueU16);
  set(kU32, kValueU32);
  set(kU64, kValueU64);
  set(kFloat, kValueFloat);
  set(kDouble, kValueDouble);
  set(kWarp, kValueU64);
  set(kBlock, kValueU64);
  EXPECT_TRUE(world.read(1, {kData, 0}, image.size()) == image);
  EXPECT_EQ(world.word(1, {kSignals, 8}), 1u);
}

// Fault: an engine that has left the GPU and is not woken, at a register of either memory; a doorbell of
// before that is taken once more when it comes back.
TYPED_TEST(GpuConformance, IdleEnginesAreWokenByDoorbells) {
  const World world = this->make_world();
  ASSERT_TRUE(world.ok());
  const device::EndpointView& view = world.view(0);
  world.change<device::SendQueue>(view.queues + 1, [](device::SendQueue& queue) {
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, queue.doorbell));
    const char* place = std::getenv("BELFRY_SOFTNIC_GPU_DOORBELLS");
    const bool in_gpu_memory = place != nullptr && std::string(place) == "gpu";
    EXPECT_EQ(attributes.type, in_gpu_memory ? cudaMemoryTypeDevice : cudaMemoryTypeHost);
  });
  const std::vector<std::byte> source = random_bytes(4096, 3);
  world.write(0, {kData, 0}, source);
  for (std::uint64_t round = 0; round < 8; ++round) {
    const Shared<Transfer> transfers(std::vector<Transfer>{{{kData, round * 64}, {kData, round * 64}, 48}});
    const Shared<Report> reports(1);
    PutTransfers<typename TestFixture::Endpoint, device::Thread> kernel;
    kernel.view = view;
    kernel.transfers = transfers.data();
    kernel.count = 1;
    kernel.after = {{kSignals, 8}, round + 1, device::SignalOperation::set};
    kernel.reports = reports.data();
    launch(1, 1, kernel);
    expect_good(reports);
    const std::vector<std::byte> got = world.read(1, {kData, round * 64}, 48);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), source.begin() + static_cast<std::ptrdiff_t>(round * 64)));
    EXPECT_EQ(world.word(1, {kSignals, 8}), round + 1);
    // Longer than it stays without work, and now and then as long.
    std::this_thread::sleep_for(round % 2 == 0 ? std::chrono::microseconds(3000)
                                               : std::chrono::microseconds(200));
  }
}

enum class Break { remote_key, local_key, peer };

// Fault: a failure that is not told, told wrongly, or for which somebody waits for ever.
TYPED_TEST(GpuConformance, FailuresNameTheirCauseInTime) {
  for (const Break what : {Break::remote_key, Break::local_key, Break::peer}) {
    auto options = this->options();
    if (what == Break::peer) options.connection.ack_timeout = 8;
    const World world = this->make_world(options);
    ASSERT_TRUE(world.ok());
    const device::EndpointView& view = world.view(0);
    FaultPlan plan;
    plan.good = {kData, 0};
    plan.bad_remote = plan.bad_local = {kData, 64};
    if (what == Break::remote_key) {
      plan.bad_remote = {kRelaxed, 64};
      const std::function<void(device::RemoteWindow&)> spoil = [](auto& w) {
        w.rkey = Be32(w.rkey.get() ^ 0x5500);
      };
      world.change(&view.remotes[kRelaxed * view.pe_count + 1], spoil);
    }
    if (what == Break::local_key) {
      plan.bad_local = {kRelaxed, 64};
      const std::function<void(device::LocalWindow&)> spoil = [](auto& w) {
        w.lkey = Be32(w.lkey.get() ^ 0x5500);
      };
      world.change(&view.windows[kRelaxed], spoil);
    }
    if (what == Break::peer) world.endpoint(1).queue(0).fail();
    plan.bytes = what == Break::local_key ? 512 : 8;
    plan.count = 5;
    plan.bad = what == Break::peer ? 0 : 2;
    plan.early = true;
    const Shared<Report> reports(1);
    const Shared<FaultRecord> records(plan.count);
    Fail<typename TestFixture::Endpoint> kernel;
    kernel.view = view;
    kernel.plan = plan;
    kernel.records = records.data();
    kernel.reports = reports.data();
    launch(1, 1, kernel);
    const Fault fault = world.endpoint(0).fault(1);
    EXPECT_EQ(fault.kind, Fault::Kind::root);
    EXPECT_EQ(fault.index, plan.bad) << "case " << static_cast<int>(what);
    EXPECT_EQ(fault.syndrome, what == Break::remote_key  ? Syndrome::remote_access
                              : what == Break::local_key ? Syndrome::local_protection
                                                         : Syndrome::transport_retry_exceeded);
    EXPECT_NE(fault.vendor, 0);
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      EXPECT_LT(records[i].elapsed_ns, kPatient.ns / 2);
      EXPECT_EQ(records[i].operation.ok() && records[i].outcome.ok(), i < plan.bad) << "put " << i;
    }
    EXPECT_EQ(reports[0].values[1], static_cast<std::uint64_t>(device::Status::completion_error));
  }
}

// Fault: posters of one queue from many blocks that lose or double a WQE, or an engine that takes one that is
// not there yet. One word counts every put of all of them, once.
TEST(GpuContention, EveryAtomicOfManyThreadsCountsOnce) {
  if (usable_gpus() == 0) GTEST_SKIP() << "no GPU";
  using Policy = GpuHandoffCollapsed;
  host::DeviceEndpointOptions options;
  options.blocks = 64;
  options.queues_a_peer = 3;
  const World world(device::requirements_of<Policy>(), options);
  ASSERT_TRUE(world.ok());
  constexpr std::uint32_t kThreads = 4 * 33;
  constexpr std::uint32_t kRounds = 20;
  const Shared<Report> reports(kThreads);
  const Shared<std::uint64_t> olds(kThreads * kRounds);
  Contend<device::gda::Endpoint<Policy>> kernel;
  kernel.view = world.view(0);
  kernel.peer = 1;
  kernel.queues = 3;
  kernel.rounds = kRounds;
  kernel.added = {kSignals, 0};
  kernel.swapped = {kSignals, 128};
  kernel.results = {kData, 0};
  kernel.olds = olds.data();
  kernel.reports = reports.data();
  launch(4, 33, kernel);
  for (std::size_t i = 0; i < reports.size(); ++i) EXPECT_EQ(reports[i].bad, 0u) << "thread " << i;
  EXPECT_EQ(world.word(1, {kSignals, 0}), std::uint64_t{kThreads} * kRounds);
  EXPECT_EQ(world.word(1, {kSignals, 128}), std::uint64_t{kThreads} * kRounds);
  std::vector<std::uint64_t> sorted(olds.data(), olds.data() + olds.size());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], i);
}

}  // namespace
}  // namespace belfry::conformance
