#include "bench/softnic_streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "belfry/host/completion.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/post.hpp"

namespace belfry::bench {
namespace {

constexpr std::size_t kCopyAreaOffset = (kTargetBytes + kCopyBytes - 1) / kCopyBytes * kCopyBytes;
constexpr std::size_t kCopyAreaBytes = kCopySlots * kCopyBytes;
// Sources, what the NIC writes to, what memcpy writes to: each mover finds its target in the cache that it
// has left it in, and neither's work can pass for the other's.
constexpr std::size_t kWindowBytes = kCopyAreaOffset + 3 * kCopyAreaBytes;

host::VerbsQueueOptions verbs_options() {
  host::VerbsQueueOptions options;
  options.send_depth = kStreamDepth;
  options.receive_depth = 1;
  options.max_inline = kSlotBytes;
  return options;
}

host::DevxQueueOptions devx_options() {
  host::DevxQueueOptions options;
  options.send_blocks = kStreamDepth;
  return options;
}

void connect(host::Queue& a, host::Queue& b) {
  a.connect(b.local_address(), {});
  b.connect(a.local_address(), {});
}

void check_post(int code) {
  if (code == 0) return;
  throw host::Error(host::ErrorKind::system, fmt::format("ibv_post_send failed: {}", std::strerror(code)), "",
                    code);
}

void wait_for_completion(ibv_cq* cq, const PollPolicy& policy) {
  ibv_wc completion{};
  int polled = 0;
  if (!wait_until([&] { return (polled = ibv_poll_cq(cq, 1, &completion)) != 0; }, policy)) {
    throw host::Error(host::ErrorKind::timed_out,
                      fmt::format("no completion within {} s", policy.limit.count()),
                      "The software NIC's thread is gone or starved");
  }
  if (polled < 0) throw host::Error(host::ErrorKind::system, "ibv_poll_cq failed: the CQ is broken", "");
  if (completion.status != IBV_WC_SUCCESS) throw host::completion_error(host::to_completion(completion));
}

}  // namespace

SoftnicStreams::SoftnicStreams(const host::Context& context, std::uint64_t seed)
    : domain_(context),
      memory_(host::Memory::allocate(domain_, kWindowBytes)),
      verbs_(domain_, verbs_options()),
      verbs_peer_(domain_, verbs_options()),
      devx_(domain_, devx_options()),
      devx_peer_(domain_, devx_options()),
      seed_(seed) {
  connect(verbs_, verbs_peer_);
  connect(devx_, devx_peer_);
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at < kCopyAreaBytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(copy_source(0) + at, &word, sizeof word);
  }
}

std::size_t SoftnicStreams::window_bytes() const { return memory_.bytes(); }
std::span<std::byte> SoftnicStreams::target() const { return memory_.span().first(kTargetBytes); }
std::byte* SoftnicStreams::copy_source(std::uint64_t i) const {
  return memory_.data() + kCopyAreaOffset + i % kCopySlots * kCopyBytes;
}
std::byte* SoftnicStreams::nic_target(std::uint64_t i) const { return copy_source(i) + kCopyAreaBytes; }
std::byte* SoftnicStreams::cpu_target(std::uint64_t i) const { return copy_source(i) + 2 * kCopyAreaBytes; }

void SoftnicStreams::stamp_sources(std::uint64_t turn) {
  for (std::size_t i = 0; i < kCopySlots; ++i) {
    const std::uint64_t value = target_value(seed_ + i, turn);
    std::memcpy(copy_source(i), &value, sizeof value);
    std::memcpy(copy_source(i) + kCopyBytes - sizeof value, &value, sizeof value);
  }
}

Latencies SoftnicStreams::latencies(std::uint64_t count, const PollPolicy& policy, const Clock& clock) {
  Latencies samples;
  samples.put_completion.reserve(count);
  clear_target(target());
  const std::uint64_t warm_up = std::min<std::uint64_t>(count / 10 + 1, 1000);
  for (std::uint64_t i = 0; i < warm_up + count; ++i) {
    const std::uint64_t value = target_value(seed_, i);
    const host::RemoteAddress where = host::at(memory_.window(), target_offset(i));
    const std::uint64_t begin = clock.now();
    check_post(host::post_write_inline(verbs_, {&value, kSlotBytes, 0}, where, i));
    wait_for_completion(verbs_.send_cq(), policy);
    const std::uint64_t done = clock.now();
    if (i >= warm_up) samples.put_completion.push_back(clock.microseconds(done - begin));
  }
  samples.verified = target_is_right(target(), seed_, warm_up + count);
  return samples;
}

Stream SoftnicStreams::verbs_stream(std::uint64_t messages, const PollPolicy& policy, const Clock& clock) {
  std::uint64_t values[kBatch];
  ibv_sge segments[kBatch];
  ibv_send_wr requests[kBatch]{};
  const host::WindowDescription window = memory_.window();
  for (std::uint32_t j = 0; j < kBatch; ++j) {
    segments[j] = {reinterpret_cast<std::uint64_t>(&values[j]), kSlotBytes, 0};
    requests[j].next = j + 1 < kBatch ? &requests[j + 1] : nullptr;
    requests[j].sg_list = &segments[j];
    requests[j].num_sge = 1;
    requests[j].opcode = IBV_WR_RDMA_WRITE;
    requests[j].send_flags = IBV_SEND_INLINE;
    requests[j].wr.rdma.rkey = window.rkey;
  }
  clear_target(target());
  std::uint64_t outstanding = 0;
  const std::uint64_t begin = clock.now();
  for (std::uint64_t i = 0; i < messages; i += kBatch) {
    for (; outstanding + kBatch > kStreamDepth; outstanding -= kSignalEvery) {
      wait_for_completion(verbs_.send_cq(), policy);
    }
    for (std::uint32_t j = 0; j < kBatch; ++j) {
      values[j] = target_value(seed_, i + j);
      requests[j].wr.rdma.remote_addr = window.address + target_offset(i + j);
    }
    const bool signalled = (i + kBatch) % kSignalEvery == 0;
    requests[kBatch - 1].send_flags =
        unsigned{IBV_SEND_INLINE} | (signalled ? unsigned{IBV_SEND_SIGNALED} : 0u);
    ibv_send_wr* bad = nullptr;
    check_post(ibv_post_send(verbs_.qp(), requests, &bad));
    outstanding += kBatch;
  }
  for (; outstanding > 0; outstanding -= kSignalEvery) wait_for_completion(verbs_.send_cq(), policy);
  return {clock.seconds(clock.now() - begin), target_is_right(target(), seed_, messages)};
}

double SoftnicStreams::nic_copies(std::uint64_t first, std::uint64_t count, const PollPolicy& policy,
                                  const Clock& clock) {
  const std::uint64_t begin = clock.now();
  std::uint64_t outstanding = 0;
  for (std::uint64_t i = first; i < first + count; ++i) {
    for (; outstanding >= kCopiesInFlight; --outstanding) wait_for_completion(verbs_.send_cq(), policy);
    const host::LocalSlice source{copy_source(i), kCopyBytes, memory_.lkey()};
    const auto where = static_cast<std::uint64_t>(nic_target(i) - memory_.data());
    check_post(host::post_write(verbs_, source, host::at(memory_.window(), where), i));
    ++outstanding;
  }
  for (; outstanding > 0; --outstanding) wait_for_completion(verbs_.send_cq(), policy);
  return clock.seconds(clock.now() - begin);
}

double SoftnicStreams::cpu_copies(std::uint64_t first, std::uint64_t count, const Clock& clock) {
  const std::uint64_t begin = clock.now();
  for (std::uint64_t i = first; i < first + count; ++i) {
    std::memcpy(cpu_target(i), copy_source(i), kCopyBytes);
    // The compiler must not see that the next turn writes the same bytes again.
    asm volatile("" ::: "memory");
  }
  return clock.seconds(clock.now() - begin);
}

Copies SoftnicStreams::copies(std::uint64_t count, const PollPolicy& policy, const Clock& clock) {
  Copies total;
  // Touches every page, and takes away what an earlier pass has left.
  std::memset(nic_target(0), 0, 2 * kCopyAreaBytes);
  std::uint64_t stamped = 0;
  for (std::uint64_t first = 0; first < count; first += kCopySlots) {
    const std::uint64_t turn = std::min<std::uint64_t>(kCopySlots, count - first);
    // Other bytes each turn, so that a write that is left out shows in the end.
    if (turn == kCopySlots) stamp_sources(stamped++);
    total.memcpy_seconds += cpu_copies(first, turn, clock);
    total.nic_seconds += nic_copies(first, turn, policy, clock);
  }
  total.verified = std::memcmp(nic_target(0), copy_source(0), kCopyAreaBytes) == 0;
  return total;
}

}  // namespace belfry::bench
