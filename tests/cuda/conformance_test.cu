// The device API on a GPU over the software NIC's GPU engine: the cases of tests/conformance that prove what
// a NIC does, with queues and windows in GPU memory. Skipped where there is no GPU.

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "belfry/device/fault.hpp"
#include "belfry/host/cuda_memory.hpp"
#include "belfry/host/device_endpoint.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "conformance/kernels/atomics.hpp"
#include "conformance/kernels/faults.hpp"
#include "conformance/kernels/policies.hpp"
#include "conformance/kernels/transfers.hpp"
#include "conformance/kernels/values.hpp"

namespace belfry::conformance {
namespace {

using device::Fault;
using device::Place;
using wire::Syndrome;

/// Tests that run at the same time must not share a fabric. Runs before main.
const bool kOwnFabric = [] {
  const std::string name = "gpu-conformance-" + std::to_string(getpid());
  return setenv("BELFRY_SOFTNIC_FABRIC", name.c_str(), 0) == 0;
}();

void check(cudaError_t code) { ASSERT_EQ(code, cudaSuccess) << cudaGetErrorString(code); }

/// Memory of reports and parameters that both sides see.
template <class T>
class Shared {
 public:
  explicit Shared(std::size_t count) : count_(count) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocDefault));
    items_.reset(static_cast<T*>(memory));
    for (std::size_t i = 0; i < count; ++i) new (items_.get() + i) T{};
  }
  explicit Shared(const std::vector<T>& items) : Shared(items.size()) {
    std::copy(items.begin(), items.end(), items_.get());
  }
  T* data() const { return items_.get(); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return items_.get()[i]; }

 private:
  struct Free {
    void operator()(T* at) const { cudaFreeHost(at); }
  };
  std::unique_ptr<T, Free> items_;
  std::size_t count_;
};

template <class Kernel>
__global__ void run_kernel(const __grid_constant__ Kernel kernel) {
  kernel();
}

template <class Kernel>
void launch(std::uint32_t blocks, std::uint32_t threads, const Kernel& kernel) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  run_kernel<<<blocks, threads, 0, stream>>>(kernel);
  check(cudaGetLastError());
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));
}

enum WindowNumber : std::uint32_t { kData, kSignals, kRelaxed };
constexpr std::size_t kDataBytes = 1 << 20;
constexpr std::uint64_t kMaxMessage = 6000;

/// Two PEs whose queues and windows lie in GPU memory.
class World {
 public:
  World(const device::Requirements& requirements, host::DeviceEndpointOptions options) {
    options.context.nic = "soft";
    options.doorbell = requirements.doorbell_mode;
    options.completions = requirements.completion_layout;
    options.placement = host::place_for_gpu();
    options.doorbell_path = host::DoorbellPath::gpu_rung;
    memory_ = options.placement.tables.memory;
    for (const std::size_t bytes : {kDataBytes, std::size_t{1} << 16, kDataBytes})
      options.windows.push_back({.bytes = bytes, .memory = memory_});
    options.windows[kRelaxed].access = host::kAllAccess | host::Access::relaxed_ordering;
    auto members = host::make_thread_bootstrap(2);
    std::vector<std::thread> makers;
    for (std::size_t pe = 0; pe < 2; ++pe) {
      makers.emplace_back([&, pe] {
        try {
          endpoints_[pe] = std::make_unique<host::DeviceEndpoint>(*members[pe], options);
          endpoints_[pe]->admit(requirements);
          made_[pe] = true;
        } catch (const host::Error& error) {
          ADD_FAILURE() << "PE " << pe << ": " << error.what();
        }
      });
    }
    for (std::thread& maker : makers) maker.join();
  }

  host::DeviceEndpoint& endpoint(std::uint32_t pe) const { return *endpoints_[pe]; }
  const device::EndpointView& view(std::uint32_t pe) const { return endpoints_[pe]->view(); }
  bool ok() const { return made_[0] && made_[1]; }

  std::vector<std::byte> read(std::uint32_t pe, Place place, std::size_t bytes) const {
    std::vector<std::byte> copy(bytes);
    memory_->read(copy.data(), at(pe, place), bytes);
    return copy;
  }
  void write(std::uint32_t pe, Place place, const std::vector<std::byte>& bytes) const {
    memory_->write(at(pe, place), bytes.data(), bytes.size());
  }
  std::uint64_t word(std::uint32_t pe, Place place) const { return memory_->load(at(pe, place)); }

  /// Entries of the view's arrays in GPU memory, changed on the host.
  template <class T>
  void change(const T* entry, const std::function<void(T&)>& edit) const {
    T copy;
    memory_->read(&copy, entry, sizeof copy);
    edit(copy);
    memory_->write(const_cast<T*>(entry), &copy, sizeof copy);
  }

 private:
  std::byte* at(std::uint32_t pe, Place place) const {
    return endpoints_[pe]->windows().memory(place.window).data() + place.offset;
  }

  std::shared_ptr<host::QueueMemory> memory_;
  std::unique_ptr<host::DeviceEndpoint> endpoints_[2];
  bool made_[2] = {};
};

template <class PolicyType>
class GpuConformance : public ::testing::Test {
 protected:
  using Policy = PolicyType;
  using Endpoint = device::gda::Endpoint<Policy>;

  void SetUp() override {
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) GTEST_SKIP() << "no GPU";
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

  static void expect_good(const Shared<Report>& reports) {
    for (std::size_t i = 0; i < reports.size(); ++i) {
      EXPECT_EQ(reports[i].bad, 0u) << "thread " << i << ", first at step " << reports[i].first_bad << ": "
                                    << device::status_name(reports[i].outcome.status) << ", syndrome "
                                    << static_cast<int>(reports[i].outcome.syndrome) << ", fault "
                                    << static_cast<int>(reports[i].outcome.fault.syndrome) << "/"
                                    << static_cast<int>(reports[i].outcome.fault.vendor);
      EXPECT_NE(reports[i].good, 0u);
    }
  }
};

using Policies = ::testing::Types<ExclusiveRecordRing, ExclusiveRecordCollapsed, ExclusiveNoRecordCollapsed,
                                  GpuHandoffRing>;
TYPED_TEST_SUITE(GpuConformance, Policies);

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() >> 8);
  return bytes;
}

constexpr std::byte kGuard{0xee};

/// Transfers of lengths around everything that changes with one, at odd places, guards between them.
std::vector<Transfer> transfers_into(std::uint32_t window, std::uint64_t& end) {
  std::vector<Transfer> transfers;
  std::uint64_t at = 16;
  std::uint64_t shift = 0;
  for (const std::uint64_t bytes :
       {0,   1,   3,   4,    7,    8,    9,    12,   13,   28,   29,   60,   64,   188,   204,
        220, 221, 256, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 5999, 6000, 6001, 12000, 18001}) {
    transfers.push_back(
        {{window, at + shift % 8}, {kData, at + (shift * 3) % 8}, static_cast<std::uint64_t>(bytes)});
    at += static_cast<std::uint64_t>(bytes) + 32;
    ++shift;
  }
  end = at;
  return transfers;
}

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
    this->expect_good(reports);
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
  this->expect_good(reports);
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
  this->expect_good(reports);
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
  this->expect_good(reports);
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
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) GTEST_SKIP() << "no GPU";
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
