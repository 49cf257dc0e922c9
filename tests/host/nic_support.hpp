#pragma once
/// \file
/// What the tests on a NIC share: two endpoints of one process, and a poster for DEVX queues that does
/// by hand, on the CPU, what a device path does.

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "belfry/host/completion.hpp"
#include "belfry/host/devx_queue.hpp"
#include "belfry/host/endpoint.hpp"
#include "belfry/host/post.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "belfry/wire/wqe.hpp"
#include "host/bootstrap_support.hpp"
#include "host/test_support.hpp"

namespace belfry::host {

/// Retries that end soon, so that tests of dead peers do too: 4.096 us << 8, about 1 ms each.
inline ConnectionParameters quick_retries() {
  ConnectionParameters p;
  p.ack_timeout = 8;
  p.retry_count = 2;
  return p;
}

inline EndpointOptions endpoint_options(QueueKind kind) {
  EndpointOptions options;
  options.context.nic = "soft";
  options.kind = kind;
  options.window_bytes = 1 << 16;
  options.connection = quick_retries();
  options.timeout = std::chrono::seconds(30);
  return options;
}

/// Two connected endpoints, made by two threads.
struct Pair {
  explicit Pair(const EndpointOptions& options) {
    auto members = make_thread_bootstrap(2);
    std::thread other([&] { second = make(*members[1], options); });
    first = make(*members[0], options);
    other.join();
  }

  bool ok() const { return first != nullptr && second != nullptr; }
  Endpoint& a() const { return *first; }
  Endpoint& b() const { return *second; }

 private:
  static std::unique_ptr<Endpoint> make(Bootstrap& bootstrap, const EndpointOptions& options) {
    try {
      return std::make_unique<Endpoint>(bootstrap, options);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
      return nullptr;
    }
  }

  std::unique_ptr<Endpoint> first;
  std::unique_ptr<Endpoint> second;
};

/// Posts to a DEVX queue in host memory and reads its CQ, one operation at a time.
class DevxPoster {
 public:
  explicit DevxPoster(const DevxQueue& queue) : view_(queue.view()) {}

  /// A signalled WQE: control segment, then `segments`. It must fit in one block.
  void post(wire::WqeOpcode opcode, std::span<const std::byte> segments) {
    std::byte* block = view_.send_queue + (producer_ % view_.send_blocks) * wire::kBlockBytes;
    const auto count = static_cast<std::uint32_t>(1 + (segments.size() + 15) / 16);
    ASSERT_LE(count, wire::kSegmentsPerBlock);
    const wire::ControlSegment control =
        wire::make_control(opcode, producer_, view_.qpn, count, wire::kWqeCompletionAlways);
    std::memcpy(block, &control, sizeof control);
    std::memcpy(block + sizeof control, segments.data(), segments.size());
    ++producer_;
  }

  void write_inline(const RemoteAddress& remote, std::span<const std::byte> data) {
    std::vector<std::byte> segments;
    append(segments, remote_segment(remote));
    append(segments, wire::InlineHeader{Be32(wire::kInlineFlag | static_cast<std::uint32_t>(data.size()))});
    segments.insert(segments.end(), data.begin(), data.end());
    post(wire::WqeOpcode::rdma_write, segments);
  }
  void move(wire::WqeOpcode opcode, const LocalSlice& local, const RemoteAddress& remote) {
    std::vector<std::byte> segments;
    append(segments, remote_segment(remote));
    append(segments, data_segment(local));
    post(opcode, segments);
  }
  void fetch_add(const LocalSlice& result, const RemoteAddress& remote, std::uint64_t add) {
    std::vector<std::byte> segments;
    append(segments, remote_segment(remote));
    append(segments, wire::AtomicSegment{Be64(add), Be64(0)});
    append(segments, data_segment(result));
    post(wire::WqeOpcode::atomic_fetch_add, segments);
  }

  /// W R D, each a release for the one before it: enough between CPU threads, which is what the software
  /// NIC is. In no_record mode there is no R, and D carries the index: the producer's, one past the last
  /// block.
  void ring() {
    if (view_.doorbell == DoorbellMode::record) {
      auto* word = reinterpret_cast<std::uint32_t*>(&view_.record->send);
      std::atomic_ref<std::uint32_t>(*word).store(wire::record_word(producer_).raw(),
                                                  std::memory_order_release);
    }
    const std::uint64_t doorbell =
        wire::send_doorbell(Be32(static_cast<std::uint32_t>(producer_ & 0xffff) << 8), Be32(view_.qpn << 8));
    std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(view_.uar_register))
        .store(doorbell, std::memory_order_release);
  }

  /// The next completion. \return nothing if none came in time
  std::optional<wire::Cqe> wait() {
    const CompletionRing& ring = view_.send_completions;
    const bool collapsed = ring.layout == CompletionLayout::collapsed;
    const std::uint64_t slot = collapsed ? 0 : consumer_ % ring.count;
    const auto log_entries = static_cast<std::uint32_t>(std::countr_zero(ring.count));
    auto* op_own = &ring.entries[slot].op_own;
    const Deadline deadline = soon();
    for (;;) {
      const std::uint8_t seen = std::atomic_ref<std::uint8_t>(*op_own).load(std::memory_order_acquire);
      // A collapsed CQ has no laps: its one entry is new once its counter is the expected one.
      const bool written = collapsed ? seen >> 4 != static_cast<unsigned>(wire::CqeOpcode::invalid)
                                     : wire::cqe_ready(seen, consumer_, log_entries);
      if (written && counter_reached(ring.entries[slot], collapsed)) break;
      if (Clock::now() >= deadline) return std::nullopt;
      std::this_thread::yield();
    }
    wire::Cqe cqe;
    std::memcpy(&cqe, &ring.entries[slot], sizeof cqe);
    ++consumer_;
    return cqe;
  }

  std::uint64_t producer() const { return producer_; }

 private:
  static wire::RemoteAddressSegment remote_segment(const RemoteAddress& remote) {
    return {Be64(remote.address), Be32(remote.rkey), Be32(0)};
  }
  static wire::DataSegment data_segment(const LocalSlice& local) {
    return {Be32(local.bytes), Be32(local.lkey), Be64(reinterpret_cast<std::uint64_t>(local.address))};
  }
  template <class T>
  static void append(std::vector<std::byte>& bytes, const T& segment) {
    const auto raw = std::as_bytes(std::span(&segment, 1));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }

  bool counter_reached(wire::Cqe& cqe, bool collapsed) const {
    if (!collapsed) return true;
    auto* raw = reinterpret_cast<std::uint16_t*>(&cqe.wqe_counter);
    const std::uint16_t counter =
        swap_bytes(std::atomic_ref<std::uint16_t>(*raw).load(std::memory_order_acquire));
    return counter == static_cast<std::uint16_t>(consumer_);
  }

  DevxQueueView view_;
  std::uint64_t producer_ = 0;
  std::uint64_t consumer_ = 0;
};

inline std::uint64_t load_u64(const std::byte* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline void store_u64(std::byte* at, std::uint64_t value) { std::memcpy(at, &value, sizeof value); }

/// Fills a region with bytes that differ by position and seed.
inline void fill_pattern(std::byte* at, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i)
    at[i] = static_cast<std::byte>((i * 131 + seed * 17 + (i >> 8)) & 0xff);
}

}  // namespace belfry::host
