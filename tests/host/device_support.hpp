#pragma once
/// \file
/// What the tests of device endpoints share: PEs of one process, and a poster that does by hand through a
/// device::EndpointView what device code does.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "belfry/device/gda/completion.hpp"
#include "belfry/host/device_endpoint.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/wire/wqe.hpp"
#include "host/bootstrap_support.hpp"
#include "host/test_support.hpp"

namespace belfry::host {

/// Runs `body` for each PE in a thread of its own. Errors that it throws are failures of the test.
inline void run_pes(int pes, const std::function<void(Bootstrap&)>& body) {
  std::vector<std::thread> threads;
  for (auto& member : make_thread_bootstrap(pes)) {
    threads.emplace_back([&body, member = std::move(member)] {
      try {
        body(*member);
      } catch (const Error& error) {
        ADD_FAILURE() << "PE " << member->rank() << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline DeviceEndpointOptions device_options(std::size_t window_bytes = 1 << 16) {
  DeviceEndpointOptions options;
  options.context.nic = "soft";
  options.connection.ack_timeout = 8;
  options.connection.retry_count = 2;
  options.blocks = 64;
  options.timeout = std::chrono::seconds(30);
  options.windows.push_back({.bytes = window_bytes});
  return options;
}

/// Opened by one PE at a time: libibverbs and libmlx5 are not compiled with TSan, which takes a descriptor
/// that one thread closes and another one gets again for a race.
inline ProtectionDomain soft_domain() {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  ContextOptions options;
  options.nic = "soft";
  return ProtectionDomain(Context::open(options));
}

inline DeviceEndpoint make_endpoint(Bootstrap& bootstrap, const DeviceEndpointOptions& options) {
  return {bootstrap, Windows(bootstrap, soft_domain(), options.windows, options.timeout), options};
}

/// Posts to one queue of a view, one block a WQE, and reads its completions.
class ViewPoster {
 public:
  static constexpr port::Scope kScope = port::Scope::system;

  ViewPoster(const device::EndpointView& view, std::uint32_t peer, std::uint32_t index = 0)
      : view_(view), queue_(view.queues[peer * view.queues_a_peer + index]) {}

  /// RDMA WRITE of 8 B inline.
  void write(device::Place at, std::uint64_t value) {
    std::vector<std::byte> segments;
    append(segments, remote(at));
    append(segments, wire::InlineHeader{Be32(wire::kInlineFlag | 8u)});
    append(segments, value);
    post(wire::WqeOpcode::rdma_write, segments);
  }
  /// RDMA WRITE from this PE's copy of a window.
  void put(device::Place to, device::Place from, std::uint32_t bytes) {
    std::vector<std::byte> segments;
    append(segments, remote(to));
    append(segments, local(from, bytes));
    post(wire::WqeOpcode::rdma_write, segments);
  }
  /// The old value lands at `result` of this PE.
  void fetch_add(device::Place at, std::uint64_t add, device::Place result) {
    std::vector<std::byte> segments;
    append(segments, remote(at));
    append(segments, wire::AtomicSegment{Be64(add), Be64(0)});
    append(segments, local(result, 8));
    post(wire::WqeOpcode::atomic_fetch_add, segments);
  }

  /// W R D, each a release for the one before it; without R in no_record mode, where D carries the producer.
  void ring() {
    if (queue_.doorbell_mode == device::DoorbellMode::record)
      port::store_release<kScope>(reinterpret_cast<std::uint32_t*>(queue_.record),
                                  wire::record_word(producer()).raw());
    const auto index = static_cast<std::uint32_t>(producer() & 0xffff) << 8;
    port::store_doorbell_release<kScope>(queue_.doorbell,
                                         wire::send_doorbell(Be32(index), Be32(queue_.qpn << 8)));
  }

  /// Waits until everything posted is complete. \return whether it was, in time and without an error
  bool drain() {
    const Deadline deadline = soon();
    while (queue_.state->consumer < producer()) {
      if (Clock::now() >= deadline) {
        ADD_FAILURE() << "no completion of queue " << queue_.qpn << " at " << queue_.state->consumer;
        return false;
      }
      if (!poll()) return false;
    }
    return true;
  }

  std::uint64_t producer() const { return queue_.state->published; }
  const device::SendQueue& queue() const { return queue_; }

 private:
  void post(wire::WqeOpcode opcode, std::span<const std::byte> segments) {
    device::QueueState& state = *queue_.state;
    const std::uint64_t index = state.reserved++;
    std::byte* block = queue_.blocks + (index & ((1u << queue_.log_blocks) - 1)) * wire::kBlockBytes;
    const auto count = static_cast<std::uint32_t>(1 + (segments.size() + 15) / 16);
    ASSERT_LE(count, wire::kSegmentsPerBlock);
    const wire::ControlSegment control =
        wire::make_control(opcode, index, queue_.qpn, count, wire::kWqeCompletionAlways);
    std::memcpy(block, &control, sizeof control);
    std::memcpy(block + sizeof control, segments.data(), segments.size());
    state.goal = state.signaled_goal = index + 1;
    state.published = state.reserved;
  }

  /// Takes one completion if there is one. \return false after an error
  bool poll() {
    device::QueueState& state = *queue_.state;
    const bool ring = queue_.completion_layout == device::CompletionLayout::ring;
    const std::uint64_t slot = ring ? state.cq_consumer & ((1u << queue_.log_completions) - 1) : 0;
    const std::byte* entry = queue_.completions + slot * wire::kCqeBytes;
    // All that is asked of it in one load: the NIC stores it last, in one piece.
    const device::gda::CqeTail tail{port::load_acquire<kScope>(
        reinterpret_cast<const std::uint64_t*>(entry + device::gda::CqeTail::kOffset))};
    const auto opcode = static_cast<wire::CqeOpcode>(tail.op_own() >> 4);
    const bool written = ring ? wire::cqe_ready(tail.op_own(), state.cq_consumer, queue_.log_completions)
                              : opcode != wire::CqeOpcode::invalid;
    if (!written) {
      std::this_thread::yield();
      return true;
    }
    if (opcode != wire::CqeOpcode::requester) {
      ADD_FAILURE() << "completion opcode " << static_cast<unsigned>(opcode);
      return false;
    }
    if (ring) ++state.cq_consumer;
    state.consumer = wire::advance_consumer(state.consumer, tail.counter());
    return true;
  }

  wire::RemoteAddressSegment remote(device::Place at) const {
    const device::RemoteWindow& window = view_.remotes[at.window * view_.pe_count + queue_.peer];
    return {Be64(window.address + at.offset), window.rkey, Be32(0)};
  }
  wire::DataSegment local(device::Place at, std::uint32_t bytes) const {
    const device::LocalWindow& window = view_.windows[at.window];
    EXPECT_TRUE(window.contains(at.offset, bytes));
    return {Be32(bytes), window.lkey, Be64(window.address + at.offset)};
  }
  template <class T>
  static void append(std::vector<std::byte>& bytes, const T& segment) {
    const auto raw = std::as_bytes(std::span(&segment, 1));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }

  const device::EndpointView& view_;
  const device::SendQueue& queue_;
};

/// An 8 B word of this PE's copy of a window, as the NIC left it.
inline std::uint64_t word(const DeviceEndpoint& endpoint, device::Place at) {
  const auto* address = endpoint.windows().memory(at.window).data() + at.offset;
  return port::load_acquire<port::Scope::system>(reinterpret_cast<const std::uint64_t*>(address));
}
inline void set_word(const DeviceEndpoint& endpoint, device::Place at, std::uint64_t value) {
  auto* address = endpoint.windows().memory(at.window).data() + at.offset;
  port::store_release<port::Scope::system>(reinterpret_cast<std::uint64_t*>(address), value);
}

}  // namespace belfry::host
