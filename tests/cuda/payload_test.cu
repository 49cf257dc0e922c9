// Queues in host memory whose payload is GPU memory: verbs, dma-bufs, mini-proxy with windows and counters on
// the GPU, and two processes. Skipped where there is no GPU.

#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "belfry/device/proxy.hpp"
#include "belfry/host/cuda_memory.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/post.hpp"
#include "belfry/host/tcp_bootstrap.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "belfry/proxy/endpoint.hpp"
#include "conformance/kernels/atomics.hpp"
#include "conformance/kernels/proxy_policies.hpp"
#include "conformance/kernels/values.hpp"
#include "cuda/gpu_world.cuh"

namespace belfry::conformance {
namespace {

constexpr const char* kPeerVariable = "BELFRY_TEST_PEER_OF";

host::ContextOptions soft() {
  host::ContextOptions options;
  options.nic = "soft";
  return options;
}

/// Two verbs queues of this process, connected, and GPU memory registered for both.
class VerbsPair {
 public:
  static constexpr std::size_t kBytes = 8 << 20;

  VerbsPair()
      : domain(host::Context::open(soft())),
        gpu(host::gpu_queue_memory()),
        memory(host::Memory::allocate_from(domain, *gpu, kBytes)),
        host_memory(host::Memory::allocate(domain, kBytes)),
        near(domain),
        far(domain) {
    near.connect(far.local_address(), {});
    far.connect(near.local_address(), {});
  }

  static ibv_wc wait(ibv_cq* cq) {
    ibv_wc wc{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
      if (std::chrono::steady_clock::now() < end) continue;
      ADD_FAILURE() << "no completion";
      wc.status = IBV_WC_GENERAL_ERR;
      return wc;
    }
    return wc;
  }
  void expect_done() const { EXPECT_EQ(wait(near.send_cq()).status, IBV_WC_SUCCESS); }
  host::RemoteAddress at(std::size_t offset) const { return host::at(memory.window(), offset); }
  std::vector<std::byte> read(std::size_t offset, std::size_t bytes) const {
    std::vector<std::byte> copy(bytes);
    gpu->read(copy.data(), memory.data() + offset, bytes);
    return copy;
  }
  void write(std::size_t offset, const std::vector<std::byte>& bytes) const {
    gpu->write(memory.data() + offset, bytes.data(), bytes.size());
  }

  host::ProtectionDomain domain;
  std::shared_ptr<host::QueueMemory> gpu;
  host::Memory memory;
  host::Memory host_memory;
  host::VerbsQueue near;
  host::VerbsQueue far;
};

class GpuPayload : public ::testing::Test {
 protected:
  void SetUp() override {
    if (usable_gpus() == 0) GTEST_SKIP() << "no GPU";
  }
};

// Fault: a length that a copy through the GPU moves wrongly, in any direction.
TEST_F(GpuPayload, VerbsMoveGpuMemory) {
  const VerbsPair pair;
  constexpr std::size_t kThere = 3 << 20;
  constexpr std::size_t kBack = 5 << 20;
  for (const std::uint32_t bytes : {1u, 8u, 4097u, 262'144u, 1'048'577u}) {
    const auto data = random_bytes(bytes, bytes);
    pair.write(64, data);
    // GPU to GPU, back by READ, and by way of host memory.
    ASSERT_EQ(host::post_write(pair.near, host::slice(pair.memory, 64, bytes), pair.at(kThere), 1), 0);
    pair.expect_done();
    EXPECT_TRUE(pair.read(kThere, bytes) == data) << bytes;
    ASSERT_EQ(host::post_read(pair.near, host::slice(pair.memory, kBack, bytes), pair.at(kThere), 2), 0);
    pair.expect_done();
    EXPECT_TRUE(pair.read(kBack, bytes) == data) << bytes;
    ASSERT_EQ(host::post_write(pair.near, host::slice(pair.memory, kBack, bytes),
                               host::at(pair.host_memory.window(), 3), 3),
              0);
    pair.expect_done();
    EXPECT_EQ(std::memcmp(pair.host_memory.data() + 3, data.data(), bytes), 0) << bytes;
    pair.write(kThere, std::vector<std::byte>(bytes));
    ASSERT_EQ(host::post_write(pair.near, host::slice(pair.host_memory, 3, bytes), pair.at(kThere), 4), 0);
    pair.expect_done();
    EXPECT_TRUE(pair.read(kThere, bytes) == data) << bytes;
  }
}

// Fault: receives, immediates and atomics that take GPU memory for the host's.
TEST_F(GpuPayload, SendsImmediatesAndAtomics) {
  const VerbsPair pair;
  const auto data = random_bytes(5000, 1);
  pair.write(0, data);
  ASSERT_EQ(host::post_receive(pair.far, host::slice(pair.memory, 1 << 20, 8192), 1), 0);
  ASSERT_EQ(host::post_send(pair.near, host::slice(pair.memory, 0, 5000), 2), 0);
  pair.expect_done();
  ibv_wc received = VerbsPair::wait(pair.far.receive_cq());
  EXPECT_EQ(received.byte_len, 5000u);
  EXPECT_TRUE(pair.read(1 << 20, 5000) == data);
  ASSERT_EQ(host::post_receive(pair.far, {}, 3), 0);
  ASSERT_EQ(host::post_write_immediate(pair.near, host::slice(pair.memory, 0, 5000), pair.at(2 << 20), 77, 4),
            0);
  pair.expect_done();
  received = VerbsPair::wait(pair.far.receive_cq());
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_TRUE(pair.read(2 << 20, 5000) == data);
  pair.write(4 << 20, std::vector<std::byte>(64));
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(
        host::post_fetch_add(pair.near, host::slice(pair.memory, (4 << 20) + 8, 8), pair.at(4 << 20), 3, i),
        0);
    pair.expect_done();
    EXPECT_EQ(pair.gpu->load(pair.memory.data() + (4 << 20) + 8), 3 * i);
  }
  EXPECT_EQ(pair.gpu->load(pair.memory.data() + (4 << 20)), 30u);
}

// Fault: memory that is freed while it is registered, and takes the process with it.
TEST_F(GpuPayload, FreedMemoryFailsItsQueue) {
  const VerbsPair pair;
  void* raw = nullptr;
  check(cudaMalloc(&raw, 32 << 20));
  const auto gone = host::Memory::adopt(pair.domain, raw, 32 << 20);
  check(cudaFree(raw));
  ASSERT_EQ(host::post_write(pair.near, host::slice(gone, 0, 64), pair.at(0), 1), 0);
  EXPECT_EQ(VerbsPair::wait(pair.near.send_cq()).status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  const VerbsPair other;  // the rest goes on
  ASSERT_EQ(host::post_write(other.near, host::slice(other.memory, 0, 64), other.at(4096), 1), 0);
  other.expect_done();
}

/// Adds to a word until it is told to stop.
struct KeepAdding {
  std::uint64_t* word;  ///< GPU memory
  const std::uint32_t* stop;
  std::uint64_t* added;

  BELFRY_FN void operator()() const {
    port::Patience patience(port::Timeout::seconds(20));
    std::uint64_t count = 0;
    for (; port::load<port::Scope::system>(stop) == 0 && !patience.is_over(); ++count)
      port::fetch_add<port::Scope::gpu>(word, std::uint64_t{1});
    *added = count;
  }
};

// Fault: an atomic of a queue in host memory that is none towards kernels: what they add meanwhile is lost.
TEST_F(GpuPayload, AtomicsAreSoTowardsKernels) {
  const char* copies = std::getenv("BELFRY_SOFTNIC_GPU_COPIES");
  if (copies != nullptr && std::string_view(copies) == "cuda") GTEST_SKIP() << "CUDA has no atomics";
  const VerbsPair pair;
  pair.write(0, std::vector<std::byte>(4096));
  const Shared<std::uint32_t> stop(1);
  const Shared<std::uint64_t> added(1);
  KeepAdding kernel;
  kernel.word = reinterpret_cast<std::uint64_t*>(pair.memory.data());
  kernel.stop = stop.data();
  kernel.added = added.data();
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  run_kernel<<<1, 1, 0, stream>>>(kernel);
  check(cudaGetLastError());
  constexpr std::uint64_t kOurs = 5000;
  for (std::uint64_t i = 0; i < kOurs; ++i) {
    ASSERT_EQ(host::post_fetch_add(pair.near, host::slice(pair.memory, 1024, 8), pair.at(0), 1, i), 0);
    pair.expect_done();
  }
  std::atomic_ref(*stop.data()).store(1);
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));
  EXPECT_GT(added[0], 0u);
  EXPECT_EQ(pair.gpu->load(pair.memory.data()), added[0] + kOurs);
}

using GetHandle = CUresult (*)(void*, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long);

// Fault: a region by dma-buf that names other memory than the buffer's, or that takes what lies outside.
TEST_F(GpuPayload, DmabufsRegister) {
  const VerbsPair pair;
  GetHandle get_handle = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuMemGetHandleForAddressRange",
                                         reinterpret_cast<void**>(&get_handle), 11070, cudaEnableDefault,
                                         &found));
  int descriptor = -1;
  void* buffer = nullptr;
  check(cudaMalloc(&buffer, 4 << 20));
  if (get_handle == nullptr || get_handle(&descriptor, reinterpret_cast<CUdeviceptr>(buffer), 4 << 20,
                                          CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) != CUDA_SUCCESS) {
    cudaFree(buffer);
    GTEST_SKIP() << "the driver gives no dma-bufs";
  }
  const auto address = reinterpret_cast<std::uint64_t>(buffer);
  constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  ibv_mr* region = ibv_reg_dmabuf_mr(pair.domain.get(), 4096, 1 << 20, address + 4096, descriptor, kRights);
  ASSERT_NE(region, nullptr) << std::strerror(errno);
  EXPECT_EQ(ibv_reg_dmabuf_mr(pair.domain.get(), 4096, 4 << 20, address + 4096, descriptor, kRights),
            nullptr);
  EXPECT_EQ(ibv_reg_dmabuf_mr(pair.domain.get(), 0, 4096, 0, descriptor, kRights), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  const auto data = random_bytes(10'000, 3);
  pair.write(0, data);
  ASSERT_EQ(
      host::post_write(pair.near, host::slice(pair.memory, 0, 10'000), {address + 4096, region->rkey}, 1), 0);
  pair.expect_done();
  std::vector<std::byte> copy(data.size());
  pair.gpu->read(copy.data(), static_cast<std::byte*>(buffer) + 4096, copy.size());
  EXPECT_TRUE(copy == data);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  ::close(descriptor);
  check(cudaFree(buffer));
}

/// One thread waits for payload, all others for that thread.
struct WaitInAFullGpu {
  const std::uint64_t* signal;  ///< GPU memory
  const std::uint64_t* payload;
  std::uint32_t words;
  std::uint32_t* ended;  ///< GPU memory: polls of the host's would fill PCIe
  Report* report;

  static constexpr port::Timeout kLimit = port::Timeout::seconds(3);

  BELFRY_FN void operator()() const {
    port::Patience patience(kLimit);
    // The rest of the waiter's warp is out of its way: they would take turns.
    if (grid_thread() != 0 && grid_thread() < 32) return;
    if (grid_thread() != 0) {
      while (port::load<port::Scope::system>(ended) == 0 && !patience.is_over()) {
      }
      return;
    }
    Report found;
    const std::uint64_t begin = port::now_ns();
    bool seen = false;
    while (!seen && !patience.is_over()) seen = port::load_acquire<port::Scope::system>(signal) != 0;
    found.check(0, seen);
    for (std::uint32_t i = 0; i < words; ++i)
      found.check(1, port::load<port::Scope::system>(payload + i) == mixed(i + 1));
    found.elapsed_ns = port::now_ns() - begin;
    *report = found;
    port::store<port::Scope::system>(ended, 1u);
  }
};

// Fault: copies that need a multiprocessor while kernels that wait for them hold all, and a signal in GPU
// memory that is there before its payload.
TEST_F(GpuPayload, ArrivesWhileKernelsFillTheGpu) {
  const VerbsPair pair;
  constexpr std::uint32_t kWords = 100'000;
  std::vector<std::byte> data(kWords * 8);
  for (std::uint32_t i = 0; i < kWords; ++i) {
    const std::uint64_t word = mixed(i + 1);
    std::memcpy(data.data() + i * 8, &word, 8);
  }
  pair.write(0, data);
  pair.write(4 << 20, std::vector<std::byte>(4096));
  const Shared<Report> reports(1);
  WaitInAFullGpu kernel;
  kernel.signal = reinterpret_cast<const std::uint64_t*>(pair.memory.data() + (4 << 20));
  kernel.payload = reinterpret_cast<const std::uint64_t*>(pair.memory.data() + (5 << 20));
  kernel.words = kWords;
  kernel.ended = reinterpret_cast<std::uint32_t*>(pair.memory.data() + (4 << 20) + 2048);
  kernel.report = reports.data();
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  run_kernel<<<2 * multiprocessors, 1024, 0, stream>>>(kernel);
  check(cudaGetLastError());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::uint64_t one = 1;
  EXPECT_EQ(host::post_write(pair.near, host::slice(pair.memory, 0, kWords * 8), pair.at(5 << 20), 1,
                             host::Signal::no),
            0);
  EXPECT_EQ(host::post_write_inline(pair.near, {&one, 8, 0}, pair.at(4 << 20), 2), 0);
  const std::uint64_t posted = port::now_ns();
  pair.expect_done();
  EXPECT_LT(port::now_ns() - posted, WaitInAFullGpu::kLimit.ns / 2) << "the copies waited for the kernel";
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));
  EXPECT_EQ(reports[0].bad, 0u) << "first at " << reports[0].first_bad;
  EXPECT_EQ(reports[0].good, kWords + 1u);
  EXPECT_LT(reports[0].elapsed_ns, WaitInAFullGpu::kLimit.ns / 2) << "the kernel saw them late";
}

constexpr std::uint32_t kTarget = kRelaxed;
constexpr std::size_t kProxyBytes = 4 << 20;

std::vector<host::WindowOptions> gpu_windows(const std::shared_ptr<host::QueueMemory>& memory) {
  std::vector<host::WindowOptions> windows;
  for (const std::size_t bytes : {kProxyBytes, std::size_t{1} << 16, kProxyBytes})
    windows.push_back({.bytes = bytes, .memory = memory});
  return windows;
}

proxy::EndpointOptions proxy_options(const std::shared_ptr<host::QueueMemory>& memory,
                                     proxy::CounterPath counters) {
  proxy::EndpointOptions options;
  options.pin = false;
  options.ring_memory = host::pinned_queue_memory();
  options.state = {device::MemoryKind::own, memory};
  options.counters = counters;
  if (counters != proxy::CounterPath::host) options.counter_memory = {device::MemoryKind::own, memory};
  return options;
}

/// Two PEs by mini-proxy, their windows in GPU memory.
class ProxyOnGpu {
 public:
  explicit ProxyOnGpu(proxy::CounterPath counters) : memory_(host::gpu_queue_memory()) {
    auto members = host::make_thread_bootstrap(2);
    std::vector<std::thread> makers;
    for (std::size_t pe = 0; pe < 2; ++pe) {
      makers.emplace_back([&, pe] {
        try {
          const host::ProtectionDomain domain(host::Context::open(soft()));
          pes_[pe].windows = std::make_unique<host::Windows>(*members[pe], domain, gpu_windows(memory_));
          pes_[pe].endpoint = std::make_unique<proxy::Endpoint>(*members[pe], *pes_[pe].windows,
                                                                proxy_options(memory_, counters));
        } catch (const host::Error& error) {
          ADD_FAILURE() << "PE " << pe << ": " << error.what();
        }
      });
    }
    for (std::thread& maker : makers) maker.join();
  }

  bool ok() const { return pes_[0].endpoint && pes_[1].endpoint; }
  const proxy::Endpoint& endpoint(int pe) const { return *pes_[pe].endpoint; }
  const device::proxy::ProxyView& view(int pe) const { return endpoint(pe).view(); }
  std::vector<std::byte> read(int pe, std::uint32_t window, std::size_t bytes) const {
    std::vector<std::byte> copy(bytes);
    memory_->read(copy.data(), pes_[pe].windows->memory(window).data(), bytes);
    return copy;
  }
  void write(int pe, std::uint32_t window, const std::vector<std::byte>& bytes) const {
    memory_->write(pes_[pe].windows->memory(window).data(), bytes.data(), bytes.size());
  }
  std::uint64_t word(int pe, Place place) const {
    return memory_->load(pes_[pe].windows->memory(place.window).data() + place.offset);
  }

 private:
  struct Pe {
    std::unique_ptr<host::Windows> windows;
    std::unique_ptr<proxy::Endpoint> endpoint;
  };
  std::shared_ptr<host::QueueMemory> memory_;
  Pe pes_[2];
};

template <class Policy>
class GpuProxy : public GpuPayload {
 protected:
  using Endpoint = device::proxy::Endpoint<Policy>;
  static void expect_good(const Shared<Report>& reports) {
    for (std::size_t i = 0; i < reports.size(); ++i)
      EXPECT_EQ(reports[i].bad, 0u) << "thread " << i << ", first at step " << reports[i].first_bad << ": "
                                    << device::status_name(reports[i].outcome.status);
  }
};
using Protocols = ::testing::Types<TunedPublished, SharedTuned>;
TYPED_TEST_SUITE(GpuProxy, Protocols);

constexpr proxy::CounterPath kCounters[] = {proxy::CounterPath::host, proxy::CounterPath::nic};

// Fault: payload in GPU memory that a worker's NIC moves wrongly, or a counter that overtakes it.
TYPED_TEST(GpuProxy, PutsAndGetsOfEveryLengthArrive) {
  using Endpoint = typename TestFixture::Endpoint;
  for (const proxy::CounterPath counters : kCounters) {
    const ProxyOnGpu world(counters);
    ASSERT_TRUE(world.ok());
    EXPECT_EQ(world.endpoint(0).counter_path(), counters);
    std::uint64_t end = 0;
    const std::vector<Transfer> all = transfers_into(kTarget, end);
    const auto source = random_bytes(end + 64, 1);
    world.write(0, kData, source);
    world.write(1, kTarget, std::vector<std::byte>(end + 64, kGuard));
    const Shared<Transfer> transfers(all);
    const Shared<Report> reports(32);
    PutTransfers<Endpoint, device::Warp> put;
    put.view = world.view(0);
    put.transfers = transfers.data();
    put.count = static_cast<std::uint32_t>(all.size());
    put.after = {{kSignals, 8}, 5, device::SignalOperation::add};
    put.reports = reports.data();
    launch(1, 32, put);
    this->expect_good(reports);
    std::vector<std::byte> image(end + 64, kGuard);
    for (const Transfer& t : all)
      std::memcpy(image.data() + t.remote.offset, source.data() + t.local.offset, t.bytes);
    EXPECT_TRUE(world.read(1, kTarget, image.size()) == image);
    EXPECT_EQ(world.word(1, {kSignals, 8}), 5u);

    world.write(0, kData, std::vector<std::byte>(end + 64, kGuard));
    const Shared<Report> got(1);
    GetTransfers<Endpoint, device::Thread> get;
    get.view = world.view(0);
    get.transfers = transfers.data();
    get.count = static_cast<std::uint32_t>(all.size());
    get.reports = got.data();
    launch(1, 1, get);
    this->expect_good(got);
    std::vector<std::byte> back(end + 64, kGuard);
    for (const Transfer& t : all)
      std::memcpy(back.data() + t.local.offset, image.data() + t.remote.offset, t.bytes);
    EXPECT_TRUE(world.read(0, kData, back.size()) == back);
  }
}

// Fault: a wrong result or old value of an atomic on GPU memory, or one that a kernel sees before it is
// there.
TYPED_TEST(GpuProxy, AtomicsReturnWhatWasThere) {
  for (const proxy::CounterPath counters : kCounters) {
    const ProxyOnGpu world(counters);
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
}

/// Fills a window, puts it to the peer with a signal behind, and checks what the peer has put here.
struct Exchange {
  device::proxy::ProxyView view;
  std::uint32_t rounds = 0;
  std::uint32_t words = 0;
  Report* report = nullptr;

  BELFRY_FN static std::uint64_t word(std::uint32_t pe, std::uint32_t round, std::uint32_t i) {
    return mixed((std::uint64_t{pe} << 60) + (std::uint64_t{round} << 32) + i + 1);
  }
  BELFRY_FN void operator()() const {
    const device::proxy::Endpoint<> endpoint(view);
    const std::uint32_t peer = 1 - view.pe;
    auto channel = endpoint.channel(peer);
    auto* mine = local_pointer<std::uint64_t>(view, {kData, 0});
    const auto* theirs = local_pointer<const std::uint64_t>(view, {kTarget, 0});
    const device::Thread self;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      for (std::uint32_t i = 0; i < words; ++i) mine[i] = word(view.pe, round, i);
      const auto op = channel.put_signal(self, {kTarget, 0}, {kData, 0}, std::uint64_t{words} * 8,
                                         device::Signal{{kSignals, 0}, 1}, kPatient);
      report->note(round, op);
      report->note(round, endpoint.wait_signal(self, {kSignals, 0}, device::Compare::equal, round, kPatient));
      for (std::uint32_t i = 0; i < words; ++i)
        report->check(1000 + round, port::load<port::Scope::system>(theirs + i) == word(peer, round, i));
      report->note(round, channel.wait(self, op, kPatient));
      // Neither overwrites what the other still looks at.
      report->note(round, channel.signal(self, device::Signal{{kSignals, 8}, 1}, kPatient));
      report->note(round, endpoint.wait_signal(self, {kSignals, 8}, device::Compare::equal, round, kPatient));
      if (report->bad != 0) return;
    }
    report->note(2000, channel.flush(self, kPatient));
  }
};

void run_exchange(host::Bootstrap& bootstrap) {
  const auto memory = host::gpu_queue_memory();
  const host::ProtectionDomain domain(host::Context::open(soft()));
  const host::Windows windows(bootstrap, domain, gpu_windows(memory));
  const proxy::Endpoint endpoint(bootstrap, windows, proxy_options(memory, proxy::CounterPath::nic));
  const Shared<Report> report(1);
  Exchange kernel;
  kernel.view = endpoint.view();
  kernel.rounds = 5;
  kernel.words = 40'000;
  kernel.report = report.data();
  launch(1, 1, kernel);
  EXPECT_EQ(report[0].bad, 0u) << "first at " << report[0].first_bad << ": "
                               << device::status_name(report[0].outcome.status);
  EXPECT_GE(report[0].good, std::uint64_t{kernel.rounds} * kernel.words);
  bootstrap.barrier(host::deadline_after(std::chrono::seconds(60)));
}

class GpuTwoProcesses : public GpuPayload {};

// Fault: payload between two processes, each with GPU memory of its own, that comes late, torn or elsewhere.
TEST_F(GpuTwoProcesses, ExchangeByProxyOnOneGpu) {
  host::TcpListener listener(host::TcpAddress{"127.0.0.1", "0"});
  setenv(kPeerVariable, listener.address().to_string().c_str(), 1);
  const pid_t peer = fork();
  ASSERT_GE(peer, 0);
  if (peer == 0) {
    execl("/proc/self/exe", "gpu_conformance_tests", "--gtest_filter=GpuTwoProcesses.DISABLED_Peer",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(127);
  }
  unsetenv(kPeerVariable);
  try {
    const auto group =
        host::make_tcp_root(std::move(listener), 2, host::deadline_after(std::chrono::seconds(60)));
    run_exchange(*group);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
    kill(peer, SIGKILL);
  }
  int status = 0;
  waitpid(peer, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the other process";
}

/// What the test above starts.
TEST_F(GpuTwoProcesses, DISABLED_Peer) {
  const char* address = std::getenv(kPeerVariable);
  if (address == nullptr) GTEST_SKIP() << "started by hand";
  const auto group = host::make_tcp_leaf(host::TcpAddress::parse(address), 1, 2,
                                         host::deadline_after(std::chrono::seconds(60)));
  run_exchange(*group);
}

}  // namespace
}  // namespace belfry::conformance
