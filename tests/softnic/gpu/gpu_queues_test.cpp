// Queues that lie in GPU memory, as the NIC keeps them. The engine does nothing here: what the CPU must not
// touch stays as it is.

#include <gtest/gtest.h>

#include "softnic/firmware/rig.hpp"
#include "softnic/gpu/fake_gpu.hpp"
#include "softnic/gpu/gpu_snapshot.hpp"

namespace belfry::softnic {
namespace {

using test::Buffer;
using test::Side;

Side::Options on_gpu() {
  Side::Options options;
  options.owner = 0;
  options.receive_entries = 0;
  return options;
}

class GpuQueues : public ::testing::Test {
 protected:
  GpuQueues() : nic_(config(), MemoryHub::create()->open_port()) {
    nic_.impl().gpu.use(std::make_unique<test::FakeGpuLibrary>(std::make_shared<test::FakeGpus>()));
  }

  static Config config() {
    Config c;
    c.seed = 1;
    return c;
  }
  GpuTables snapshot() {
    ControlLock guard(nic_.impl());
    return take_gpu_snapshot(nic_.impl(), 0);
  }

  Nic nic_;
};

// Fault: a CPU that executes, flushes or forgets the doorbell of a queue that it cannot reach.
TEST_F(GpuQueues, AreLeftAloneByTheCpu) {
  Side near(nic_, on_gpu());
  Side far(nic_, on_gpu());
  near.connect(far);
  far.connect(near);
  Buffer target(64);
  const std::uint32_t key = far.register_memory(target);
  const std::uint64_t value = 0x1122334455667788;
  near.write_inline({target.address(), key}, &value, sizeof value);
  near.ring();
  const std::uint64_t rung = *reinterpret_cast<std::uint64_t*>(near.page.data() + wire::kUarFirstRegister);
  for (int i = 0; i < 4; ++i) nic_.poll();
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(target.data()), 0u);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(near.page.data() + wire::kUarFirstRegister), rung);
  QpModify fail;
  fail.state = QpState::error;
  ASSERT_EQ(nic_.modify_qp(near.qpn, fail), 0);
  nic_.poll();
  wire::Cqe cqe;
  EXPECT_FALSE(near.poll_cq(cqe));
  EXPECT_EQ(snapshot().queues.at(0).state, GpuQueueState::flushing);
}

// Fault: a CQ that both the CPU and the GPU engine write.
TEST_F(GpuQueues, ShareNoCompletionQueueWithTheCpus) {
  Side cpu(nic_);
  Side gpu(nic_, on_gpu());
  QpAttributes a;
  a.pd = cpu.pd;
  a.send_queue = cpu.send_ring.data();
  a.send_blocks = 64;
  a.doorbell_record = cpu.records.data();
  a.uar = cpu.uar;
  a.send_cq = a.receive_cq = gpu.cqn;
  EXPECT_FALSE(nic_.create_qp(a)) << "a queue of the CPU on a CQ of the engine";
  a.queues_owner = 0;
  a.send_cq = a.receive_cq = cpu.cqn;
  EXPECT_FALSE(nic_.create_qp(a)) << "and the reverse";
}

// Fault: tables from which the engine takes another queue, peer or right than the NIC's own.
TEST_F(GpuQueues, AreDescribedToTheEngine) {
  Side near(nic_, on_gpu());
  Side far(nic_, on_gpu());
  EXPECT_EQ(snapshot().queues.at(0).state, GpuQueueState::idle);
  near.connect(far);
  EXPECT_FALSE(snapshot().queues.at(0).reachable) << "the peer is not ready";
  far.connect(near);
  Buffer pinned(8192);
  near.register_memory(pinned);
  const GpuTables tables = snapshot();
  ASSERT_EQ(tables.queues.size(), 2u);
  const GpuQueuePair& q = tables.queues[0];
  EXPECT_EQ(q.number, near.qpn);
  EXPECT_EQ(q.blocks, near.send_ring.data());
  EXPECT_EQ(q.block_mask, near.options.send_blocks - 1);
  EXPECT_EQ(reinterpret_cast<const unsigned char*>(q.doorbells[0]),
            near.page.data() + wire::kUarFirstRegister);
  EXPECT_EQ(q.state, GpuQueueState::active);
  EXPECT_TRUE(q.reachable && q.reads);
  EXPECT_EQ(q.peer_pd, far.pd);
  EXPECT_EQ(q.peer_access, Side::kAll);
  EXPECT_NE(q.completions.slot, tables.queues[1].completions.slot);
  EXPECT_FALSE(q.completions.shared);
  EXPECT_EQ(tables.watched.size(), 2u);
  // The registers' pages and the region: host memory that the engine touches.
  EXPECT_EQ(tables.host_ranges.size(), 3u);
}

// Fault: a queue that goes on where the one that was reset left off.
TEST_F(GpuQueues, AreOthersAfterAReset) {
  Side near(nic_, on_gpu());
  const std::uint64_t before = snapshot().queues.at(0).generation;
  QpModify reset;
  reset.state = QpState::reset;
  ASSERT_EQ(nic_.modify_qp(near.qpn, reset), 0);
  EXPECT_NE(snapshot().queues.at(0).generation, before);
}

// Fault: GPU memory that the CPU's NIC takes for its own, and dies of.
TEST_F(GpuQueues, MemoryOfAGpuIsOutOfTheCpusReach) {
  Side near(nic_);
  Side far(nic_);
  near.connect(far);
  far.connect(near);
  MkeyAttributes a;
  a.pd = far.pd;
  a.address = 0x7f0000000000;
  a.length = 4096;
  a.memory = reinterpret_cast<void*>(a.address);
  a.access = Side::kAll;
  a.memory_owner = 0;
  const auto key = nic_.create_mkey(a);
  ASSERT_TRUE(key);
  const std::uint64_t value = 7;
  near.write_inline({a.address, *key}, &value, sizeof value);
  near.ring();
  for (int i = 0; i < 4; ++i) nic_.poll();
  wire::Cqe cqe;
  ASSERT_TRUE(near.poll_cq(cqe));
  EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::requester_error);
  EXPECT_EQ(nic_.impl().counters.memory_faults, 0u);
  EXPECT_EQ(nic_.destroy_mkey(*key), 0);
}

}  // namespace
}  // namespace belfry::softnic
