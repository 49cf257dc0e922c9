#include "host/device_admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "belfry/device/queue_map.hpp"
#include "host/device_tables.hpp"

namespace belfry::host {
namespace {

using device::CompletionLayout;
using device::DoorbellMode;
using device::MemoryKind;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Three PEs with two queues each, none to PE 1 itself; all in memory of its own.
struct Endpoint3 {
  Endpoint3() : queues(6) {
    for (std::size_t slot = 0; slot < 6; ++slot) {
      queues[slot].peer = static_cast<std::uint32_t>(slot / 2);
      if (slot / 2 != 1) queues[slot].state = &state;
    }
  }
  std::vector<Refusal> refusals(const device::Requirements& requirements) {
    return find_refusals(requirements, {queues, 2, windows, 972, pages});
  }
  device::QueueState state{};
  std::vector<device::SendQueue> queues;
  std::vector<std::uint32_t> pages{10, 11, 0, 0, 14, 15};
  std::vector<MemoryKind> windows{MemoryKind::own, MemoryKind::own};
};

// Fault: a policy that fits is refused, for a slot without a queue or a requirement that it does not make.
TEST(Admission, TakesWhatFits) {
  Endpoint3 endpoint;
  endpoint.queues[2].doorbell_mode = DoorbellMode::no_record;  // no queue there
  device::Requirements all;
  all.own_memory = all.doorbell_only = true;
  all.max_inline = 972;
  EXPECT_TRUE(endpoint.refusals(all).empty());
  for (auto& queue : endpoint.queues) {
    queue.blocks_kind = queue.record_kind = MemoryKind::host;
    queue.owns_register = false;
  }
  EXPECT_TRUE(endpoint.refusals({}).empty());
}

// Fault: a refusal that does not say which queue, what it is, and what to change.
TEST(Admission, NamesRequirementQueueAndRemedy) {
  Endpoint3 endpoint;
  endpoint.queues[5].doorbell_mode = DoorbellMode::no_record;
  auto refusals = endpoint.refusals({});
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_THAT(refusals[0].what,
              AllOf(HasSubstr("mode record"), HasSubstr("queue 1 to PE 2"), HasSubstr("no_record")));
  EXPECT_THAT(refusals[0].remedy, HasSubstr("DeviceEndpointOptions::doorbell to record"));

  device::Requirements requirements;
  requirements.completion_layout = CompletionLayout::ring;
  requirements.max_inline = 973;
  endpoint.queues[5].doorbell_mode = DoorbellMode::record;
  refusals = endpoint.refusals(requirements);
  ASSERT_EQ(refusals.size(), 2u);
  EXPECT_THAT(refusals[0].what, AllOf(HasSubstr("collapsed"), HasSubstr("queue 0 to PE 0 (and 3 more)")));
  EXPECT_THAT(refusals[0].remedy, HasSubstr("DeviceEndpointOptions::completions"));
  EXPECT_THAT(refusals[1].what, AllOf(HasSubstr("973 B"), HasSubstr("972 B")));
}

// Fault: assumption A1 taken for granted where a part of it lies elsewhere; or a record that is not used
// counts.
TEST(Admission, OwnMemoryMeansQueueRecordAndWindows) {
  device::Requirements requirements;
  requirements.own_memory = true;
  Endpoint3 endpoint;
  endpoint.queues[4].blocks_kind = MemoryKind::host;
  ASSERT_EQ(endpoint.refusals(requirements).size(), 1u);
  EXPECT_THAT(endpoint.refusals(requirements)[0].what,
              AllOf(HasSubstr("A1"), HasSubstr("queue 0 to PE 2 lies in host memory")));
  endpoint.queues[4].blocks_kind = MemoryKind::own;

  endpoint.queues[4].record_kind = MemoryKind::peer;
  ASSERT_EQ(endpoint.refusals(requirements).size(), 1u);
  EXPECT_THAT(endpoint.refusals(requirements)[0].what, HasSubstr("the record of queue 0 to PE 2"));
  for (auto& queue : endpoint.queues) queue.doorbell_mode = DoorbellMode::no_record;
  requirements.doorbell_mode = DoorbellMode::no_record;
  EXPECT_TRUE(endpoint.refusals(requirements).empty());

  endpoint.windows[1] = MemoryKind::host;
  ASSERT_EQ(endpoint.refusals(requirements).size(), 1u);
  EXPECT_THAT(endpoint.refusals(requirements)[0].what, HasSubstr("window 1 lies in host memory"));
  EXPECT_THAT(endpoint.refusals(requirements)[0].remedy, HasSubstr("WindowOptions"));
}

// Fault: assumption A2 on a register that other queues ring, where the NIC looks at every record.
TEST(Admission, DoorbellOnlyNeedsARegisterOfItsOwn) {
  device::Requirements requirements;
  requirements.doorbell_only = true;
  Endpoint3 endpoint;
  endpoint.queues[1].owns_register = false;
  const auto refusals = endpoint.refusals(requirements);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_THAT(refusals[0].what, AllOf(HasSubstr("A2"), HasSubstr("queue 1 to PE 0")));
  EXPECT_THAT(refusals[0].remedy, AllOf(HasSubstr("queues_a_register"), HasSubstr("gpu_fence_record")));

  endpoint.queues[1].owns_register = true;
  endpoint.pages[4] = endpoint.pages[1];  // the two registers of one page
  ASSERT_EQ(endpoint.refusals(requirements).size(), 1u);
  EXPECT_THAT(endpoint.refusals(requirements)[0].what,
              HasSubstr("queue 1 to PE 0 (and 1 more) shares its register's page"));
}

// Fault: a queue whose first poster or poller takes it for used.
TEST(DeviceTables, StatesStartAsIfAllBeforeWereDone) {
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 65536}) {
    const device::QueueState state = initial_state(first);
    EXPECT_EQ(state.reserved, first);
    EXPECT_EQ(state.published, first);
    EXPECT_EQ(state.consumer, first);
    EXPECT_EQ(state.goal, first);
    EXPECT_EQ(state.signaled_goal, first);
    EXPECT_EQ(state.cq_consumer, 0u);
    EXPECT_EQ(state.fault, 0u);
    EXPECT_EQ(state.lock, 0u);
  }
}

/// Host memory that says it is a GPU's.
struct OfGpu final : QueueMemory {
  explicit OfGpu(int number) : number_(number) {}
  std::shared_ptr<void> allocate(std::size_t bytes) override { return host_queue_memory()->allocate(bytes); }
  void fill(void*, std::byte, std::size_t) override {}
  void write(void*, const void*, std::size_t) override {}
  std::uint64_t load(const void*) override { return 0; }
  std::optional<int> gpu() const override { return number_; }

 private:
  int number_;
};

// Fault: assumption A1 taken for granted because a caller says "own" of another GPU's memory.
TEST(DeviceTables, MemoryOfAnotherGpuIsAPeers) {
  const auto first = std::make_shared<OfGpu>(0);
  const auto second = std::make_shared<OfGpu>(1);
  Placement placement = Placement::all({MemoryKind::own, first});
  placement.send_queue.memory = second;
  placement.record = {MemoryKind::host, host_queue_memory()};
  const Placement resolved = resolve(placement);
  EXPECT_EQ(resolved.send_queue.kind, MemoryKind::peer);
  EXPECT_EQ(resolved.completion_queue.kind, MemoryKind::own);
  EXPECT_EQ(resolved.record.kind, MemoryKind::host);
  EXPECT_EQ(kind_for(resolved.tables, MemoryKind::own, 1), MemoryKind::peer);
  EXPECT_EQ(kind_for(resolved.tables, MemoryKind::own, 0), MemoryKind::own);
  EXPECT_EQ(kind_for(resolved.tables, MemoryKind::own, {}), MemoryKind::own) << "nobody knows better";
  // CPU lanes know of no GPU: what they are told holds.
  EXPECT_EQ(kind_for(resolve(Placement{}).tables, MemoryKind::own, 1), MemoryKind::own);
}

// Fault: two threads of a grid on one queue that each takes for its own, or an index without a queue.
TEST(QueueMap, GivesEveryThreadItsQueue) {
  using device::QueueMap;
  constexpr QueueMap kThreads = QueueMap::per_thread(3, 32);
  static_assert(kThreads.queues() == 96 && kThreads.index(0, 31) == 31 && kThreads.index(2, 0) == 64);
  std::vector<int> used(96);
  for (std::uint32_t block = 0; block < 3; ++block)
    for (std::uint32_t thread = 0; thread < 32; ++thread) ++used[kThreads.index(block, thread)];
  EXPECT_EQ(used, std::vector<int>(96, 1));
  static_assert(kThreads.index(3, 0) == QueueMap::kNone && kThreads.index(0, 32) == QueueMap::kNone,
                "a larger grid would have two owners of one queue");

  constexpr QueueMap kBlocks = QueueMap::per_block(4);
  static_assert(kBlocks.queues() == 4 && kBlocks.index(3, 17) == 3 && kBlocks.index(4, 0) == QueueMap::kNone);
  constexpr QueueMap kPeer = QueueMap::per_peer(2);
  static_assert(kPeer.queues() == 2 && kPeer.index(5, 9) == 1);
  static_assert(QueueMap::per_peer(0).queues() == 1, "an index modulo 0 has no answer");
  static_assert(QueueMap::per_thread(1u << 20, 1u << 20).queues() == std::uint64_t{1} << 40);
}

}  // namespace
}  // namespace belfry::host
