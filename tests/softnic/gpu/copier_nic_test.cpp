// The NIC with a copier whose kernel runs on CPU lanes, and with copies that take their time.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "softnic/firmware/rig.hpp"
#include "softnic/gpu/lanes_copier.hpp"

namespace belfry::softnic {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::CountedCopier;
using test::LanesKernel;
using test::Side;

/// Copies once the gate is open.
class GatedCopier final : public GpuCopier {
 public:
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = true;
    bool reached = false;

    void set(bool to) {
      const std::lock_guard lock(mutex);
      open = to;
      reached = false;
      changed.notify_all();
    }
    void pass() {
      std::unique_lock lock(mutex);
      reached = true;
      changed.notify_all();
      changed.wait(lock, [&] { return open; });
    }
    bool await_arrival() {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, 20s, [&] { return reached; });
    }
  };

  explicit GatedCopier(Gate& gate) : gate_(gate) {}
  unsigned char* staging() override { return copier_.staging(); }
  bool to_gpu(void* to, const void* staged, std::size_t bytes) override {
    gate_.pass();
    return copier_.to_gpu(to, staged, bytes);
  }
  bool from_gpu(void* staged, const void* from, std::size_t bytes) override {
    gate_.pass();
    return copier_.from_gpu(staged, from, bytes);
  }
  bool holds(const void*, std::size_t) override { return true; }
  std::string error() const override { return {}; }

 private:
  Gate& gate_;
  CountedCopier copier_;
};

class Library final : public GpuLibrary {
 public:
  Library(Buffer& memory, GatedCopier::Gate& gate) : memory_(memory), gate_(gate) {}

  MemoryOwner owner_of(const void* address, std::size_t) override {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - memory_.address();
    return offset < memory_.size() ? MemoryOwner{0} : kHostMemory;
  }
  std::unique_ptr<GpuEngine> make_engine(const GpuEngineOptions&, std::string& error) override {
    error = "there is none";
    return nullptr;
  }
  std::unique_ptr<GpuCopier> make_copier(MemoryOwner, std::string&) override {
    return std::make_unique<GatedCopier>(gate_);
  }
  std::unique_ptr<GpuCopierKernel> make_copier_kernel(MemoryOwner, std::string&) override {
    return std::make_unique<LanesKernel>();
  }
  std::unique_ptr<GpuRegisterMemory> make_register_memory(MemoryOwner, std::string& error) override {
    error = "there is none";
    return nullptr;
  }

 private:
  Buffer& memory_;
  GatedCopier::Gate& gate_;
};

class CopierNic : public ::testing::TestWithParam<GpuCopies> {
 protected:
  CopierNic() {
    Config config;
    config.seed = 1;
    config.gpu.copies = GetParam();
    config.gpu.idle = 10s;  // between copies; the kernel has its own
    nic = std::make_unique<Nic>(config, MemoryHub::create()->open_port());
    nic->impl().gpu.use(std::make_unique<Library>(gpu, gate));
    near = std::make_unique<Side>(*nic);
    far = std::make_unique<Side>(*nic);
    near->connect(*far);
    far->connect(*near);
    key = register_gpu(*far);
    near_key = register_gpu(*near);
  }

  std::uint32_t register_gpu(const Side& side) const {
    MkeyAttributes a;
    a.pd = side.pd;
    a.address = gpu.address();
    a.length = gpu.size();
    a.memory = reinterpret_cast<void*>(gpu.address());
    a.access = Side::kAll;
    a.memory_owner = nic->owner_of(a.memory, gpu.size());
    return *nic->create_mkey(a);
  }
  void expect_done() const {
    wire::Cqe cqe{};
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!near->poll_cq(cqe)) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "no completion";
      nic->poll();
    }
    EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
  }
  void put(std::uint64_t value) const {
    near->write_inline({gpu.address() + 64, key}, &value, sizeof value);
    near->ring();
  }
  std::uint64_t word(std::size_t offset) {
    std::uint64_t value;
    std::memcpy(&value, gpu.data() + offset, sizeof value);
    return value;
  }

  Buffer gpu{1 << 20};
  GatedCopier::Gate gate;
  std::unique_ptr<Nic> nic;
  std::unique_ptr<Side> near;
  std::unique_ptr<Side> far;
  std::uint32_t key = 0;       ///< the target's
  std::uint32_t near_key = 0;  ///< the poster's
};

// Fault: a way through the copier that the NIC does not take, or takes with other bytes, and one that it
// takes though it is told not to.
TEST_P(CopierNic, WritesReadsAndAtomicsArrive) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  Buffer host(4096);
  const std::uint32_t host_key = near->register_memory(host);
  const GpuCopiers& copiers = nic->impl().gpu_copiers;
  std::uint64_t round = 0;
  do {
    ++round;
    put(round);
    expect_done();
    ASSERT_EQ(word(64), round);
    near->write({gpu.address() + 8192, key}, {gpu.address(), 3000, near_key});
    near->ring();
    expect_done();
    ASSERT_EQ(std::memcmp(gpu.data() + 8192, gpu.data(), 3000), 0);
    near->read({gpu.address() + 8192, key}, {host.address(), 3000, host_key});
    near->ring();
    expect_done();
    ASSERT_EQ(std::memcmp(host.data(), gpu.data(), 3000), 0);
    near->fetch_add({gpu.address() + 32, key}, 2, {gpu.address() + 40, 8, near_key});
    near->ring();
    expect_done();
    ASSERT_EQ(word(32), 2 * round);
    ASSERT_EQ(word(40), 2 * (round - 1));
  } while (round < 20 || (GetParam() == GpuCopies::automatic && copiers.served() < 20 &&
                          std::chrono::steady_clock::now() < end));
  if (GetParam() == GpuCopies::automatic) {
    EXPECT_GE(copiers.served(), 20u);
  } else {
    EXPECT_EQ(copiers.served(), 0u);
  }
  EXPECT_EQ(nic->impl().counters.memory_faults, 0u);
}

// Fault: a WRITE from a GPU onto itself whose ranges overlap, copied in no order.
TEST_P(CopierNic, OverlappingRangesMoveAsOne) {
  std::vector<unsigned char> before(20'000);
  for (unsigned round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < before.size(); ++i)
      gpu.data()[4096 + i] = before[i] = static_cast<unsigned char>(i * 31 + round);
    near->write({gpu.address() + 4096 + 100, key}, {gpu.address() + 4096, 20'000, near_key});
    near->ring();
    expect_done();
    ASSERT_EQ(std::memcmp(gpu.data() + 4196, before.data(), before.size()), 0);
  }
}

// Fault: a lock of the NIC that is held across a call of CUDA's: whoever registers memory, or takes the NIC's
// objects for a GPU's engine, waits for it, and CUDA perhaps for them. And a call that takes away what the
// copy is of.
TEST_P(CopierNic, OthersGoOnWhileCudaCopies) {
  if (GetParam() != GpuCopies::cuda) GTEST_SKIP() << "the copier's kernel would do it";
  gate.set(false);
  put(7);
  std::thread poller([&] { expect_done(); });
  ASSERT_TRUE(gate.await_arrival());
  const std::uint32_t further = register_gpu(*far);
  EXPECT_NE(further, 0u);
  EXPECT_TRUE(nic->alloc_pd(0, nullptr));
  EXPECT_TRUE(nic->query_qp(near->qpn));
  std::atomic<bool> gone{false};
  std::thread remover([&] {
    EXPECT_EQ(nic->destroy_mkey(key), 0);
    gone = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(gone) << "under the copy";
  EXPECT_EQ(word(64), 0u);
  gate.set(true);
  remover.join();
  poller.join();
  EXPECT_EQ(word(64), 7u);
  key = further;
  put(8);
  expect_done();
  EXPECT_EQ(word(64), 8u);
}

INSTANTIATE_TEST_SUITE_P(Copies, CopierNic, ::testing::Values(GpuCopies::automatic, GpuCopies::cuda),
                         [](const auto& copies) {
                           return copies.param == GpuCopies::cuda ? "cuda" : "kernel";
                         });

}  // namespace
}  // namespace belfry::softnic
