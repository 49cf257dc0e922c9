// Queues and memory of several GPUs: which engine executes what, and what it is told. No engine does anything
// here.

#include <gtest/gtest.h>

#include "softnic/firmware/rig.hpp"
#include "softnic/gpu/fake_gpu.hpp"
#include "softnic/gpu/gpu_snapshot.hpp"

namespace belfry::softnic {
namespace {

using test::Buffer;
using test::FakeGpus;
using test::Side;

Side::Options of_gpu(MemoryOwner owner) {
  Side::Options options;
  options.owner = owner;
  return options;
}

class GpuEnginesTest : public ::testing::Test {
 protected:
  /// \param gpu BELFRY_SOFTNIC_GPU, if it is set
  std::unique_ptr<Nic> make_nic(std::optional<unsigned> gpu = {}) {
    Config config;
    config.seed = 1;
    config.gpu.gpu = gpu;
    auto nic = std::make_unique<Nic>(config, MemoryHub::create()->open_port());
    nic->impl().gpu.use(std::make_unique<test::FakeGpuLibrary>(gpus_));
    return nic;
  }
  /// Makes a page say that it is a GPU's.
  void give(Buffer& page, MemoryOwner owner) { gpus_->give(page.data(), page.size(), owner); }

  std::shared_ptr<FakeGpus> gpus_ = std::make_shared<FakeGpus>();
};

const GpuQueuePair& queue_of(const FakeGpus::Engine& engine, const Side& side) {
  const std::uint32_t slot = side.nic.impl().find_qp(side.qpn)->gpu_slot;
  return engine.queues.at(slot);
}
const MkeyEntry& key_of(const FakeGpus::Engine& engine, std::uint32_t key) {
  return engine.keys.at(key >> 8);
}

// Fault: a queue that two engines execute, or the wrong one, or none.
TEST_F(GpuEnginesTest, EachExecutesTheQueuesOfItsOwnMemory) {
  const auto nic = make_nic();
  Side near(*nic, of_gpu(0));
  EXPECT_FALSE(gpus_->has(1)) << "an engine on a GPU without queues";
  Side far(*nic, of_gpu(1));
  near.connect(far);
  far.connect(near);
  for (const MemoryOwner gpu : {MemoryOwner{0}, MemoryOwner{1}}) {
    const FakeGpus::Engine engine = gpus_->engine(gpu);
    const Side& own = gpu == 0 ? near : far;
    const Side& other = gpu == 0 ? far : near;
    EXPECT_EQ(queue_of(engine, own).state, GpuQueueState::active);
    EXPECT_EQ(queue_of(engine, own).number, own.qpn);
    EXPECT_TRUE(queue_of(engine, own).reachable) << "the peer is another engine's, and yet in this process";
    EXPECT_FALSE(queue_of(engine, own).far || queue_of(engine, own).completions.far);
    EXPECT_TRUE(queue_of(engine, own).peer_elsewhere);
    EXPECT_FALSE(queue_of(engine, own).peer_receives) << "a receive ring that two engines count";
    EXPECT_EQ(queue_of(engine, other).state, GpuQueueState::idle);
    EXPECT_EQ(queue_of(engine, other).blocks, nullptr);
  }
}

// Fault: a payload of another GPU that the engine takes for its own, and orders too narrowly; or memory that
// it has no way to.
TEST_F(GpuEnginesTest, TellNearMemoryFromFar) {
  const auto nic = make_nic();
  Side near(*nic, of_gpu(0));
  Side far(*nic, of_gpu(1));
  Buffer of_first(4096);
  Buffer of_second(4096);
  Buffer of_host(4096);
  give(of_first, 0);
  give(of_second, 1);
  const std::uint32_t first = near.register_memory(of_first);
  const std::uint32_t second = far.register_memory(of_second);
  const std::uint32_t host = near.register_memory(of_host);
  near.connect(far);
  far.connect(near);
  const FakeGpus::Engine zero = gpus_->engine(0);
  const FakeGpus::Engine one = gpus_->engine(1);
  EXPECT_TRUE(key_of(zero, first).near);
  EXPECT_FALSE(key_of(zero, second).near);
  EXPECT_FALSE(key_of(zero, host).near);
  EXPECT_FALSE(key_of(one, first).near);
  EXPECT_TRUE(key_of(one, second).near);
  for (const std::uint32_t key : {first, second, host}) EXPECT_EQ(key_of(zero, key).key, key);
  EXPECT_TRUE(zero.reached.contains(1));
  EXPECT_TRUE(one.reached.contains(0));
}

// Fault: an option that moves no queue, or moves it and leaves its fences as narrow as before.
TEST_F(GpuEnginesTest, OneCanExecuteTheQueuesOfAll) {
  const auto nic = make_nic(1);
  Side on_first(*nic, of_gpu(0));
  Side on_second(*nic, of_gpu(1));
  on_first.connect(on_second);
  on_second.connect(on_first);
  EXPECT_FALSE(gpus_->has(0));
  const FakeGpus::Engine engine = gpus_->engine(1);
  EXPECT_TRUE(queue_of(engine, on_first).far && queue_of(engine, on_first).completions.far);
  EXPECT_FALSE(queue_of(engine, on_second).far || queue_of(engine, on_second).completions.far);
  EXPECT_EQ(queue_of(engine, on_first).state, GpuQueueState::active);
  EXPECT_TRUE(queue_of(engine, on_first).peer_receives) << "one engine counts all receives";
}

// Fault: a GPU without peer access that the engine's kernel touches, and dies of.
TEST_F(GpuEnginesTest, DropWhatTheDriverKeepsOutOfReach) {
  gpus_->out_of_reach = {1};
  const auto nic = make_nic();
  Side near(*nic, of_gpu(0));
  Side peer(*nic, of_gpu(0));
  Buffer of_second(4096);
  give(of_second, 1);
  const std::uint32_t key = peer.register_memory(of_second);
  near.connect(peer);
  peer.connect(near);
  EXPECT_EQ(key_of(gpus_->engine(0), key).key, 0u);
}

// Fault: a queue that nobody executes, and whoever waits for it waits for ever.
TEST_F(GpuEnginesTest, AQueueWithoutAnEngineIsNotMade) {
  gpus_->out_of_reach = {1};
  gpus_->absent = {2};
  for (const auto& [engine, owner] :
       {std::pair{std::optional<unsigned>(0), 1}, std::pair{std::optional<unsigned>(), 2}}) {
    const auto nic = make_nic(engine);
    Side cpu(*nic);
    QpAttributes a = cpu.further_queue();
    a.queues_owner = static_cast<MemoryOwner>(owner);
    const auto made = nic->create_qp(a);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error(), EOPNOTSUPP);
  }
}

// Fault: a CQ whose entries two engines write.
TEST_F(GpuEnginesTest, ShareNoCompletionQueue) {
  const auto nic = make_nic();
  Side near(*nic, of_gpu(0));
  QpAttributes a = near.further_queue();
  a.queues_owner = 1;
  EXPECT_FALSE(nic->create_qp(a));
  a.queues_owner = 0;
  const auto made = nic->create_qp(a);
  ASSERT_TRUE(made);
  EXPECT_EQ(nic->destroy_qp(*made), 0);
}

// Fault: an engine that does not hear of another one's queue that failed or went.
TEST_F(GpuEnginesTest, AllHearOfChanges) {
  const auto nic = make_nic();
  Side near(*nic, of_gpu(0));
  {
    Side far(*nic, of_gpu(1));
    near.connect(far);
    far.connect(near);
    EXPECT_TRUE(queue_of(gpus_->engine(0), near).reachable);
    QpModify fail;
    fail.state = QpState::error;
    ASSERT_EQ(nic->modify_qp(far.qpn, fail), 0);
    EXPECT_EQ(queue_of(gpus_->engine(1), far).state, GpuQueueState::flushing);
    EXPECT_FALSE(queue_of(gpus_->engine(0), near).reachable);
  }
  EXPECT_EQ(queue_of(gpus_->engine(0), near).state, GpuQueueState::active);
}

}  // namespace
}  // namespace belfry::softnic
