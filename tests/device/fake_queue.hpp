#pragma once
/// \file
/// A send queue in plain memory whose NIC is the test: it says when a WQE completes, and how.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "belfry/device/gda.hpp"
#include "belfry/wire/wqe.hpp"

namespace belfry::device::test {

using gda::Announce;
using gda::Channel;

/// One PE of two; the queue leads to PE 1, whose window is memory of the test as well.
class FakeQueue {
 public:
  static constexpr std::uint32_t kQpn = 0xabcdef;
  static constexpr std::uint32_t kLkey = 0x1100;
  static constexpr std::uint32_t kRkey = 0x2200;
  static constexpr std::uint64_t kWindowBytes = 4096;

  explicit FakeQueue(unsigned log_blocks = 4, CompletionLayout layout = CompletionLayout::ring,
                     DoorbellMode mode = DoorbellMode::record, std::uint64_t first_index = 0)
      : blocks_(std::size_t{1} << log_blocks),
        completions_(std::size_t{1} << (layout == CompletionLayout::ring ? log_blocks : 0)) {
    std::memset(blocks_.data(), 0, blocks_.size() * sizeof(Block));
    std::memset(completions_.data(), 0xff, completions_.size() * sizeof(Block));
    state = QueueState{};
    state.reserved = state.published = state.goal = state.signaled_goal = state.consumer = first_index;
    queues[0] = queues[1] = SendQueue{};
    queues[0].state = nullptr;
    SendQueue& q = queues[1];
    q.blocks = reinterpret_cast<std::byte*>(blocks_.data());
    q.record = &record;
    q.doorbell = &doorbell;
    q.completions = reinterpret_cast<const std::byte*>(completions_.data());
    q.state = &state;
    q.qpn = kQpn;
    q.log_blocks = static_cast<std::uint8_t>(log_blocks);
    q.log_completions = static_cast<std::uint8_t>(layout == CompletionLayout::ring ? log_blocks : 0);
    q.doorbell_mode = mode;
    q.completion_layout = layout;
    q.peer = 1;
    for (int i = 0; i < 2; ++i) {
      windows[i].address = reinterpret_cast<std::uint64_t>(memory.data()) + i * kWindowBytes;
      windows[i].bytes = kWindowBytes;
      windows[i].lkey = Be32(kLkey);
    }
    windows[1].flags = kWindowRelaxedOrdering;
    for (auto& r : remotes) r = RemoteWindow{0x7000'0000'0000u, Be32(kRkey), 0};
    view.pe_count = 2;
    view.queues_a_peer = 1;
    view.window_count = 2;
    view.queues = queues.data();
    view.windows = windows.data();
    view.remotes = remotes.data();
    view.max_message = 1 << 30;
    view.max_inline = 220;
    view.sink = Place{0, kWindowBytes - 64};
  }

  /// The bytes of the block at a 64-bit index.
  const unsigned char* block(std::uint64_t index) const {
    return blocks_[index & (blocks_.size() - 1)].bytes.data();
  }
  wire::ControlSegment control(std::uint64_t index) const {
    wire::ControlSegment c;
    std::memcpy(&c, block(index), sizeof c);
    return c;
  }
  template <class Segment>
  Segment segment(std::uint64_t index, unsigned number) const {
    Segment s;
    std::memcpy(&s, block(index + number / 4) + (number % 4) * 16, sizeof s);
    return s;
  }

  /// The NIC's part: a CQE for the WQE whose first block is `index`.
  void complete(std::uint64_t index, wire::CqeOpcode opcode = wire::CqeOpcode::requester,
                wire::Syndrome syndrome = wire::Syndrome::none, std::uint8_t vendor = 0) {
    wire::ErrorCqe e{};
    e.vendor_syndrome = vendor;
    e.syndrome = static_cast<std::uint8_t>(syndrome);
    e.opcode_qpn.set(kQpn);
    e.wqe_counter.set(static_cast<std::uint16_t>(index));
    const bool lap = (written_ & completions_.size()) != 0;
    e.op_own = wire::make_op_own(opcode, false, queues[1].completion_layout == CompletionLayout::ring && lap);
    unsigned char* at = completions_[written_++ & (completions_.size() - 1)].bytes.data();
    std::memcpy(at, &e, 56);
    std::uint64_t tail;
    std::memcpy(&tail, reinterpret_cast<const unsigned char*>(&e) + 56, sizeof tail);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(at + 56), tail, __ATOMIC_RELEASE);
  }
  void fail(std::uint64_t index, wire::Syndrome syndrome, std::uint8_t vendor) {
    complete(index, wire::CqeOpcode::requester_error, syndrome, vendor);
  }

  EndpointView view;
  std::array<SendQueue, 2> queues;
  std::array<LocalWindow, 2> windows;
  std::array<RemoteWindow, 4> remotes;
  alignas(64) std::array<std::byte, 2 * kWindowBytes> memory{};
  QueueState state;
  Be32 record = Be32(0);
  std::uint64_t doorbell = 0;

 private:
  struct alignas(64) Block {
    std::array<unsigned char, 64> bytes;
  };
  std::vector<Block> blocks_;
  std::vector<Block> completions_;
  std::uint64_t written_ = 0;
};

/// Policies of the tests: every combination that posts differently.
template <CompletionLayout kLayout, Sharing kSharing, Publication kPublication, DoorbellMode kMode>
struct TestPolicy : DefaultPolicy {
  static constexpr CompletionLayout completion_layout = kLayout;
  static constexpr Sharing sharing = kSharing;
  static constexpr Publication publication = kPublication;
  static constexpr DoorbellMode doorbell_mode = kMode;
  static constexpr Ordering ordering = default_ordering(kMode);
  static constexpr port::Timeout turn_timeout = port::Timeout::milliseconds(20);
};
using Ring =
    TestPolicy<CompletionLayout::ring, Sharing::exclusive, Publication::handoff, DoorbellMode::record>;
using Collapsed = TestPolicy<CompletionLayout::collapsed, Sharing::exclusive, Publication::handoff,
                             DoorbellMode::no_record>;
using SharedRing =
    TestPolicy<CompletionLayout::ring, Sharing::gpu, Publication::handoff, DoorbellMode::no_record>;
using SharedCollapsed =
    TestPolicy<CompletionLayout::collapsed, Sharing::gpu, Publication::handoff, DoorbellMode::record>;
using Locked =
    TestPolicy<CompletionLayout::collapsed, Sharing::block, Publication::lock, DoorbellMode::record>;

/// The same with the payload in the WQE.
template <class Policy, std::uint32_t kMaxInline = 220>
struct Inlined : Policy {
  static constexpr Payload payload = Payload::inlined;
  static constexpr std::uint32_t max_inline = kMaxInline;
};
using AllPolicies = ::testing::Types<Ring, Collapsed, SharedRing, SharedCollapsed, Locked>;

template <class Policy>
FakeQueue make_queue(unsigned log_blocks = 4, std::uint64_t first_index = 0) {
  return FakeQueue(log_blocks, Policy::completion_layout, Policy::doorbell_mode, first_index);
}

constexpr port::Timeout kShort = port::Timeout::milliseconds(5);

}  // namespace belfry::device::test
