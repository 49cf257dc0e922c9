// Doorbell registers in GPU memory: the test option, whose they are, and that they wake the engine.

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "softnic/config_variables.hpp"
#include "softnic/firmware/rig.hpp"
#include "softnic/gpu/fake_gpu.hpp"

namespace belfry::softnic {
namespace {

using test::FakeGpus;
using test::Side;

const ConfigVariable& option() {
  for (const ConfigVariable& variable : config_variables())
    if (variable.suffix == "GPU_DOORBELLS") return variable;
  throw std::logic_error("there is no such setting");
}

// Fault: a value that is taken for the other one, or for the default without a word.
TEST(GpuDoorbellsOption, IsReadBackOrRefused) {
  EXPECT_EQ(Config{}.gpu.doorbells, GpuDoorbells::host);
  Config config;
  set_variable(config, option(), "gpu", "GPU_DOORBELLS");
  EXPECT_EQ(config.gpu.doorbells, GpuDoorbells::gpu);
  const auto environment = to_environment(config);
  ASSERT_EQ(environment.size(), 1u);
  EXPECT_EQ(environment[0].first, "BELFRY_SOFTNIC_GPU_DOORBELLS");
  EXPECT_EQ(environment[0].second, "gpu");
  set_variable(config, option(), "host", "GPU_DOORBELLS");
  EXPECT_EQ(config.gpu.doorbells, GpuDoorbells::host);
  for (const char* wrong : {"", "GPU", "gpu ", "device", "1"}) {
    try {
      set_variable(config, option(), wrong, "BELFRY_SOFTNIC_GPU_DOORBELLS");
      ADD_FAILURE() << "'" << wrong << "' is accepted";
    } catch (const std::invalid_argument& refusal) {
      EXPECT_EQ(refusal.what(), "BELFRY_SOFTNIC_GPU_DOORBELLS='" + std::string(wrong) +
                                    "' is not accepted: give host or gpu");
    }
  }
}

class GpuDoorbellsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Nic> make_nic(GpuDoorbells doorbells = GpuDoorbells::gpu) {
    Config config;
    config.seed = 1;
    config.gpu.doorbells = doorbells;
    auto nic = std::make_unique<Nic>(config, MemoryHub::create()->open_port());
    nic->impl().gpu.use(std::make_unique<test::FakeGpuLibrary>(gpus_));
    return nic;
  }
  static Side::Options of_gpu(MemoryOwner owner) {
    Side::Options options;
    options.owner = owner;
    return options;
  }
  static std::uint64_t* page_register(Side& side, unsigned i) {
    return reinterpret_cast<std::uint64_t*>(side.page.data() + wire::kUarFirstRegister +
                                            i * wire::kUarRegisterBytes);
  }
  GpuQueuePair queue_of(const Side& side, MemoryOwner engine = 0) {
    side.nic.impl().gpu.settle();
    return gpus_->engine(engine).queues.at(side.nic.impl().find_qp(side.qpn)->gpu_slot);
  }
  /// Whether the engine is started within a second.
  bool wakes(MemoryOwner engine, unsigned launches_before) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (gpus_->engine(engine).launches == launches_before && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    return gpus_->engine(engine).launches != launches_before;
  }

  std::shared_ptr<FakeGpus> gpus_ = std::make_shared<FakeGpus>();
  std::string error_;
};

// Fault: registers of GPU memory that nobody asked for, or for queues that the CPU executes and would not
// see.
TEST_F(GpuDoorbellsTest, AreGivenForQueuesOfAnEngineAlone) {
  const auto off = make_nic(GpuDoorbells::host);
  Side plain(*off, of_gpu(0));
  EXPECT_EQ(off->impl().gpu.register_of(page_register(plain, 0), 0, error_), nullptr);
  EXPECT_EQ(error_, "");
  const auto nic = make_nic();
  Side cpu(*nic);
  EXPECT_EQ(nic->impl().gpu.register_of(page_register(cpu, 0), 0, error_), nullptr);
  EXPECT_EQ(error_, "");
  alignas(4096) static unsigned char strange[4096] = {};
  EXPECT_EQ(nic->impl().gpu.register_of(strange + wire::kUarFirstRegister, 0, error_), nullptr);
  EXPECT_EQ(error_, "");
  Side gpu(*nic, of_gpu(0));
  QpAttributes a = cpu.further_queue();
  a.uar = gpu.uar;
  const auto made = nic->create_qp(a);
  ASSERT_TRUE(made);
  EXPECT_EQ(nic->impl().gpu.register_of(page_register(gpu, 0), 0, error_), nullptr);
  EXPECT_NE(error_, "") << "a doorbell page of a queue of the CPU's and one of the engine's";
  EXPECT_EQ(nic->destroy_qp(*made), 0);
}

// Fault: an engine that looks at the page of before, or at a register that is no longer anybody's.
TEST_F(GpuDoorbellsTest, TakeThePlaceOfOneRegister) {
  const auto nic = make_nic();
  Side side(*nic, of_gpu(0));
  GpuEngines& engines = nic->impl().gpu;
  std::uint64_t* given = engines.register_of(page_register(side, 1), 0, error_);
  ASSERT_NE(given, nullptr) << error_;
  EXPECT_EQ(engines.register_of(page_register(side, 1), 0, error_), given) << "another one's register";
  EXPECT_EQ(queue_of(side).doorbells[0], page_register(side, 0));
  EXPECT_EQ(queue_of(side).doorbells[1], given);
  engines.return_register(given);
  EXPECT_EQ(queue_of(side).doorbells[1], given) << "one of two has handed it back";
  engines.return_register(given);
  EXPECT_EQ(queue_of(side).doorbells[1], page_register(side, 1));
}

// Fault: a doorbell in GPU memory that wakes nobody, or one of a queue that was reset which does.
TEST_F(GpuDoorbellsTest, WakeTheEngineOnce) {
  const auto nic = make_nic();
  Side side(*nic, of_gpu(0));
  std::uint64_t* given = nic->impl().gpu.register_of(page_register(side, 0), 0, error_);
  ASSERT_NE(given, nullptr) << error_;
  nic->impl().gpu.settle();
  const unsigned before = gpus_->engine(0).launches;
  EXPECT_FALSE(wakes(0, before)) << "nobody rang";
  const std::uint64_t bell = wire::send_doorbell(Be32(3u << 8), Be32(side.qpn << 8));
  std::atomic_ref(*given).store(bell);
  EXPECT_TRUE(wakes(0, before));
  QpModify reset;
  reset.state = QpState::reset;
  ASSERT_EQ(nic->modify_qp(side.qpn, reset), 0);
  EXPECT_EQ(std::atomic_ref(*given).load(), 0u) << "the next queue of that number would take it for its own";
}

// Fault: registers on a GPU that the kernels which ring them cannot reach.
TEST_F(GpuDoorbellsTest, SayWhereTheyAreOutOfReach) {
  gpus_->out_of_reach = {1};
  const auto nic = make_nic();
  Side side(*nic, of_gpu(0));
  EXPECT_EQ(nic->impl().gpu.register_of(page_register(side, 0), 1, error_), nullptr);
  EXPECT_EQ(error_, "no link");
  EXPECT_NE(nic->impl().gpu.register_of(page_register(side, 0), 0, error_), nullptr);
}

}  // namespace
}  // namespace belfry::softnic
