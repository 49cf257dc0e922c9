#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "host/counting_memory.hpp"
#include "host/nic_support.hpp"

namespace belfry::host {
namespace {

using ::testing::HasSubstr;

struct Mode {
  DoorbellMode doorbell;
  CompletionLayout completions;
};

std::string name_of(const ::testing::TestParamInfo<Mode>& info) {
  return std::string(info.param.doorbell == DoorbellMode::record ? "Record" : "NoRecord") +
         (info.param.completions == CompletionLayout::ring ? "Ring" : "Collapsed");
}

EndpointOptions options_of(const Mode& mode) {
  EndpointOptions options = endpoint_options(QueueKind::devx);
  options.devx.send_blocks = 64;
  options.devx.doorbell = mode.doorbell;
  options.devx.completions = mode.completions;
  return options;
}

class NicDevxQueue : public ::testing::TestWithParam<Mode> {
 protected:
  NicDevxQueue() : pair_(options_of(GetParam())) {}
  void SetUp() override {
    ASSERT_TRUE(pair_.ok());
    poster_.emplace(pair_.a().devx_queue(1));
  }

  RemoteAddress remote(std::uint64_t offset) { return at(pair_.a().window(1), offset); }
  std::byte* local(std::size_t offset) { return pair_.a().memory().data() + offset; }
  std::byte* target(std::size_t offset) { return pair_.b().memory().data() + offset; }

  /// Rings and waits for the WQE posted last.
  void complete() {
    poster_->ring();
    const std::optional<wire::Cqe> cqe = poster_->wait();
    ASSERT_TRUE(cqe);
    EXPECT_EQ(cqe->opcode(), wire::CqeOpcode::requester);
    EXPECT_EQ(cqe->wqe_counter.get(), static_cast<std::uint16_t>(poster_->producer() - 1));
  }

  Pair pair_;
  std::optional<DevxPoster> poster_;
};

// Guards against a fresh ring whose entries read as valid.
TEST_P(NicDevxQueue, FreshCompletionsAreInvalid) {
  const CompletionRing& ring = pair_.a().devx_queue(1).view().send_completions;
  ASSERT_GE(ring.count, 64u);
  for (std::uint32_t i = 0; i < ring.count; ++i) {
    ASSERT_EQ(ring.entries[i].opcode(), wire::CqeOpcode::invalid);
    ASSERT_TRUE(ring.entries[i].owner());
    ASSERT_EQ(wire::advance_consumer(0, ring.entries[i].wqe_counter.get()), 0u);
  }
}

// Guards against the raw pointers of the view not being those the NIC reads.
TEST_P(NicDevxQueue, WritesReadsAndAtomics) {
  const std::uint64_t value = 0x1122334455667788;
  poster_->write_inline(remote(40), std::as_bytes(std::span(&value, 1)));
  complete();
  EXPECT_EQ(load_u64(target(40)), value);

  fill_pattern(local(1), 9000, 3);
  poster_->move(wire::WqeOpcode::rdma_write, slice(pair_.a().memory(), 1, 9000), remote(100));
  complete();
  EXPECT_EQ(std::memcmp(target(100), local(1), 9000), 0);

  fill_pattern(target(20000), 7000, 9);
  poster_->move(wire::WqeOpcode::rdma_read, slice(pair_.a().memory(), 20001, 7000), remote(20000));
  complete();
  EXPECT_EQ(std::memcmp(local(20001), target(20000), 7000), 0);

  store_u64(target(8), 5);
  poster_->fetch_add(slice(pair_.a().memory(), 0, 8), remote(8), 6);
  complete();
  EXPECT_EQ(load_u64(local(0)), 5u);
  EXPECT_EQ(load_u64(target(8)), 11u);
}

// Guards against indices, owner bits and counters that go wrong when the rings wrap.
TEST_P(NicDevxQueue, WrapsManyTimes) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    poster_->write_inline(remote(8 * (i % 100)), std::as_bytes(std::span(&i, 1)));
    ASSERT_NO_FATAL_FAILURE(complete());
    ASSERT_EQ(load_u64(target(8 * (i % 100))), i);
  }
}

// Guards against a doorbell that announces only its own WQE: it announces all before it.
TEST_P(NicDevxQueue, OneDoorbellForABatch) {
  for (std::uint64_t i = 0; i < 16; ++i) {
    poster_->write_inline(remote(8 * i), std::as_bytes(std::span(&i, 1)));
  }
  poster_->ring();
  if (GetParam().completions == CompletionLayout::ring) {
    for (int i = 0; i < 16; ++i) ASSERT_TRUE(poster_->wait());
  } else {
    const CompletionRing& ring = pair_.a().devx_queue(1).view().send_completions;
    auto* raw = reinterpret_cast<std::uint16_t*>(&ring.entries[0].wqe_counter);
    const Deadline deadline = soon();
    while (swap_bytes(std::atomic_ref<std::uint16_t>(*raw).load(std::memory_order_acquire)) != 15) {
      ASSERT_LT(Clock::now(), deadline);
      std::this_thread::yield();
    }
  }
  for (std::uint64_t i = 0; i < 16; ++i) EXPECT_EQ(load_u64(target(8 * i)), i);
}

// Guards against an error CQE that does not name the WQE, the QP and the syndrome.
TEST_P(NicDevxQueue, BadRkeyGivesAnErrorCqe) {
  RemoteAddress bad = remote(0);
  bad.rkey ^= 0x5500;
  poster_->move(wire::WqeOpcode::rdma_write, slice(pair_.a().memory(), 0, 8), bad);
  poster_->ring();
  const std::optional<wire::Cqe> cqe = poster_->wait();
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->opcode(), wire::CqeOpcode::requester_error);
  wire::ErrorCqe error;
  std::memcpy(&error, &*cqe, sizeof error);
  EXPECT_EQ(static_cast<wire::Syndrome>(error.syndrome), wire::Syndrome::remote_access);
  EXPECT_EQ(error.opcode_qpn.get() & 0xffffff, pair_.a().devx_queue(1).qpn());
  EXPECT_EQ(error.wqe_counter.get(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Modes, NicDevxQueue,
                         ::testing::Values(Mode{DoorbellMode::record, CompletionLayout::ring},
                                           Mode{DoorbellMode::record, CompletionLayout::collapsed},
                                           Mode{DoorbellMode::no_record, CompletionLayout::ring},
                                           Mode{DoorbellMode::no_record, CompletionLayout::collapsed}),
                         name_of);

Context soft() {
  ContextOptions options;
  options.nic = "soft";
  return Context::open(options);
}

// Guards against two queues ringing one register without knowing: values overwrite each other.
TEST(NicDevxSetup, QueuesOwnTheirRegisters) {
  const ProtectionDomain domain(soft());
  const DevxQueue a(domain);
  const DevxQueue b(domain);
  EXPECT_TRUE(a.view().owns_register);
  EXPECT_NE(a.view().uar_register, b.view().uar_register);
  EXPECT_NE(a.qpn(), b.qpn());
}

// Guards against a receive queue that shares memory with the send queue.
TEST(NicDevxSetup, ReceiveQueueLiesBesideTheSendQueue) {
  const ProtectionDomain domain(soft());
  DevxQueueOptions options;
  options.receive_entries = 32;
  options.receive_stride = 32;
  const DevxQueue queue(domain, options);
  const DevxQueueView& view = queue.view();
  EXPECT_EQ(view.receive_queue + 32 * 32, view.send_queue);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.send_queue) % 64, 0u);
  EXPECT_EQ(view.receive_completions.count, 32u);
  EXPECT_NE(view.receive_completions.cqn, view.send_completions.cqn);
  EXPECT_GE(reinterpret_cast<std::byte*>(view.record), view.send_queue + std::size_t{view.send_blocks} * 64);
}

// Guards against a caller's memory being ignored, or freed before the queue is gone.
TEST(NicDevxSetup, UsesTheCallersMemory) {
  const auto memory = std::make_shared<CountingMemory>();
  DevxQueueOptions options;
  options.memory = memory;
  {
    const DevxQueue queue(ProtectionDomain(soft()), options);
    EXPECT_EQ(*memory->alive, 2);  // one completion ring, one for the queues
    EXPECT_EQ(memory->filled, std::size_t{options.send_blocks} * 64);
  }
  EXPECT_EQ(*memory->alive, 0);
}

// Guards against a record or a completion ring that stays in the send queue's memory where another is given.
TEST(NicDevxSetup, PartsMayLieApart) {
  const auto queue_memory = std::make_shared<CountingMemory>();
  const auto completion_memory = std::make_shared<CountingMemory>();
  const auto record_memory = std::make_shared<CountingMemory>();
  DevxQueueOptions options;
  options.memory = queue_memory;
  options.completion_memory = completion_memory;
  options.record_memory = record_memory;
  const DevxQueue queue(ProtectionDomain(soft()), options);
  EXPECT_TRUE(queue_memory->contains(queue.view().send_queue));
  EXPECT_TRUE(completion_memory->contains(queue.view().send_completions.entries));
  EXPECT_TRUE(record_memory->contains(queue.view().record));
  EXPECT_FALSE(queue_memory->contains(queue.view().record));
}

// Guards against a shared register that is taken for the queue's own, or rung without a record.
TEST(NicDevxSetup, RegistersMayBeShared) {
  const Context context = soft();
  const ProtectionDomain domain(context);
  DevxQueueOptions options;
  options.doorbell_register = DoorbellRegister(context);
  const DevxQueue a(domain, options);
  const DevxQueue b(domain, options);
  EXPECT_EQ(a.view().uar_register, b.view().uar_register);
  EXPECT_FALSE(a.view().owns_register);
  options.doorbell = DoorbellMode::no_record;
  EXPECT_THAT(expect_error(ErrorKind::bad_argument, [&] { DevxQueue(domain, options); }).what(),
              HasSubstr("shared register"));
}

// Guards against a depth that is left at the device's, or at 1, whatever was asked for.
TEST(NicDevxSetup, OffersTheDepthAskedFor) {
  const ProtectionDomain domain(soft());
  EXPECT_EQ(DevxQueue(domain).local_address().depth, domain.context().depth());
  DevxQueueOptions options;
  options.depth = ReadAtomicDepth{4, 8};
  EXPECT_EQ(DevxQueue(domain, options).local_address().depth, (ReadAtomicDepth{4, 8}));
  for (const ReadAtomicDepth depth :
       {ReadAtomicDepth{0, 1}, ReadAtomicDepth{1, 0}, ReadAtomicDepth{17, 1}, ReadAtomicDepth{1, 17}}) {
    options.depth = depth;
    expect_error(ErrorKind::bad_argument, [&] { DevxQueue(domain, options); });
  }
}

// Guards against sizes that the firmware refuses with a bare syndrome.
TEST(NicDevxSetup, RefusesBadSizes) {
  const ProtectionDomain domain(soft());
  const auto refuse = [&](auto change) {
    DevxQueueOptions options;
    change(options);
    expect_error(ErrorKind::bad_argument, [&] { DevxQueue(domain, options); });
  };
  refuse([](auto& o) { o.send_blocks = 0; });
  refuse([](auto& o) { o.send_blocks = 100; });
  refuse([](auto& o) { o.send_blocks = 65536; });
  refuse([](auto& o) { o.receive_entries = 3; });
  refuse([](auto& o) {
    o.receive_entries = 16;
    o.receive_stride = 8;
  });
  refuse([](auto& o) { o.user_index = 1u << 24; });
}

// Guards against a queue that cannot be flushed: what is posted after must complete as an error.
TEST(NicDevxSetup, FailFlushes) {
  EndpointOptions options = endpoint_options(QueueKind::devx);
  const Pair pair(options);
  ASSERT_TRUE(pair.ok());
  pair.a().queue(1).fail();
  DevxPoster poster(pair.a().devx_queue(1));
  poster.move(wire::WqeOpcode::rdma_write, slice(pair.a().memory(), 0, 8), at(pair.a().window(1), 0));
  poster.ring();
  const auto cqe = poster.wait();
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->opcode(), wire::CqeOpcode::requester_error);
  wire::ErrorCqe error;
  std::memcpy(&error, &*cqe, sizeof error);
  EXPECT_EQ(static_cast<wire::Syndrome>(error.syndrome), wire::Syndrome::flushed);
}

}  // namespace
}  // namespace belfry::host
