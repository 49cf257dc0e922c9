#include "bench/op_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "belfry/host/completion.hpp"
#include "belfry/host/errors.hpp"

namespace belfry::bench {
namespace {

// The window: target, then the flag on a cache line of its own, then the sources of pointer writes.
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kFlagOffset = (kTargetBytes + kCacheLine - 1) / kCacheLine * kCacheLine;
constexpr std::size_t kSourceOffset = kFlagOffset + kCacheLine;
constexpr std::size_t kSources = 64;
constexpr std::size_t kWindowBytes = kSourceOffset + kSources * kSlotBytes;

/// One flag write in so many asks for a CQE, the last of which frees the queue's slots; fewer than there
/// are sources, so that no source is overwritten before its write is complete.
constexpr std::uint64_t kSignalEvery = 32;
static_assert(kSignalEvery < kSources);

/// The longest that one end waits for the other in an exchange, besides what the operations take.
constexpr std::chrono::seconds kExchangeLimit{60};
constexpr std::chrono::milliseconds kLimitPerOperation{1};

/// Writes that go ahead of the recorded ones: caches, branch predictors and the NIC's thread wake up.
std::uint64_t warm_up_of(std::uint64_t count) { return std::min<std::uint64_t>(count / 10 + 1, 1000); }

host::Deadline exchange_deadline(std::uint64_t operations = 0) {
  return host::deadline_after(kExchangeLimit + kLimitPerOperation * static_cast<std::int64_t>(operations));
}

host::EndpointOptions endpoint_options(const std::string& nic) {
  host::EndpointOptions options = host::EndpointOptions::from(host::Environment::of_this_process());
  options.context.nic = nic;
  options.window_bytes = kWindowBytes;
  options.verbs.send_depth = 128;
  options.verbs.receive_depth = 1;
  options.verbs.max_inline = kSlotBytes;
  options.timeout = kExchangeLimit;
  return options;
}

[[noreturn]] void throw_timed_out(const std::string& what, const PollPolicy& policy) {
  throw host::Error(host::ErrorKind::timed_out, fmt::format("no {} within {} s", what, policy.limit.count()),
                    "The other end is gone or stuck: see what it printed");
}

}  // namespace

OpEnd::OpEnd(const std::string& nic, host::Bootstrap& group, std::uint64_t seed)
    : group_(group),
      endpoint_(group, endpoint_options(nic)),
      memory_(endpoint_.memory()),
      queue_(endpoint_.verbs_queue(1 - group.rank())),
      peer_(endpoint_.window(1 - group.rank())),
      seed_(seed) {}

void OpEnd::prepare(ibv_send_wr& request, ibv_sge& segment, Payload payload, std::uint64_t value,
                    std::uint64_t slot, std::uint64_t remote_offset) {
  std::byte* source = memory_.data() + kSourceOffset + slot % kSources * kSlotBytes;
  std::memcpy(source, &value, sizeof value);
  segment = {reinterpret_cast<std::uint64_t>(source), kSlotBytes, memory_.lkey()};
  request = {};
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = payload == Payload::inlined ? unsigned{IBV_SEND_INLINE} : 0u;
  request.wr.rdma.remote_addr = peer_.address + remote_offset;
  request.wr.rdma.rkey = peer_.rkey;
}

void OpEnd::post(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  if (const int code = ibv_post_send(queue_.qp(), &request, &bad); code != 0) {
    throw host::Error(host::ErrorKind::system, fmt::format("ibv_post_send failed: {}", std::strerror(code)),
                      "The queue may have gone to the error state after an earlier failure", code);
  }
}

void OpEnd::wait_for_completion(const PollPolicy& policy) {
  ibv_wc completion{};
  int polled = 0;
  const auto ready = [&] { return (polled = ibv_poll_cq(queue_.send_cq(), 1, &completion)) != 0; };
  if (!wait_until(ready, policy)) throw_timed_out("completion", policy);
  if (polled < 0) throw host::Error(host::ErrorKind::system, "ibv_poll_cq failed: the CQ is broken", "");
  if (completion.status != IBV_WC_SUCCESS) throw host::completion_error(host::to_completion(completion));
}

PutSamples OpEnd::measure_puts(Payload payload, std::uint64_t count, const PollPolicy& policy,
                               const Clock& clock) {
  PutSamples samples;
  samples.issue.reserve(count);
  samples.put_completion.reserve(count);
  const std::uint64_t warm_up = warm_up_of(count);
  ibv_send_wr request;
  ibv_sge segment;
  group_.barrier(exchange_deadline());
  for (std::uint64_t i = 0; i < warm_up + count; ++i) {
    prepare(request, segment, payload, target_value(seed_, i), i, target_offset(i));
    request.send_flags |= IBV_SEND_SIGNALED;
    const std::uint64_t begin = clock.now();
    post(request);
    const std::uint64_t issued = clock.now();
    wait_for_completion(policy);
    const std::uint64_t done = clock.now();
    if (i < warm_up) continue;
    samples.issue.push_back(clock.microseconds(issued - begin));
    samples.put_completion.push_back(clock.microseconds(done - begin));
  }
  group_.barrier(exchange_deadline());
  const auto blobs = group_.all_gather({}, exchange_deadline());
  samples.verified =
      target_is_right(blobs[static_cast<std::size_t>(1 - group_.rank())], seed_, warm_up + count);
  return samples;
}

void OpEnd::serve_puts(std::uint64_t count) {
  const auto target = memory_.span().first(kTargetBytes);
  clear_target(target);
  group_.barrier(exchange_deadline());
  // The peer writes, and comes here when its last CQE is there. An acknowledgement is not visibility, but
  // the way of this barrier through the peer's CPU is longer than that of a write through the PCIe switch.
  group_.barrier(exchange_deadline(count));
  group_.all_gather(target, exchange_deadline());
}

bool OpEnd::wait_for_flag(Wanted wanted, const PollPolicy& policy) {
  std::atomic_ref<std::uint64_t> flag(*reinterpret_cast<std::uint64_t*>(memory_.data() + kFlagOffset));
  std::uint64_t seen = 0;
  const auto changed = [&] { return (seen = flag.load(std::memory_order_acquire)) != wanted.before; };
  if (!wait_until(changed, policy)) throw_timed_out("write from the peer", policy);
  return seen == wanted.value;
}

void OpEnd::send_flag(Payload payload, std::uint64_t i) {
  ibv_send_wr request;
  ibv_sge segment;
  prepare(request, segment, payload, target_value(seed_, i), i, kFlagOffset);
  if (i % kSignalEvery == 0) request.send_flags |= IBV_SEND_SIGNALED;
  post(request);
}

void OpEnd::reap_flag(std::uint64_t i, const PollPolicy& policy) {
  if (i % kSignalEvery == 0) wait_for_completion(policy);
}

RoundTripSamples OpEnd::measure_round_trips(Payload payload, std::uint64_t count, const PollPolicy& policy,
                                            const Clock& clock) {
  RoundTripSamples samples;
  samples.round_trip.reserve(count);
  samples.verified = true;
  const std::uint64_t warm_up = warm_up_of(count);
  std::memset(memory_.data() + kFlagOffset, 0, kSlotBytes);
  group_.barrier(exchange_deadline());
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < warm_up + count; ++i) {
    const std::uint64_t value = target_value(seed_, i);
    const std::uint64_t begin = clock.now();
    send_flag(payload, i);
    if (!wait_for_flag({value, before}, policy)) samples.verified = false;
    const std::uint64_t done = clock.now();
    before = value;
    reap_flag(i, policy);
    if (i >= warm_up) samples.round_trip.push_back(clock.microseconds(done - begin));
  }
  group_.barrier(exchange_deadline());
  return samples;
}

void OpEnd::serve_round_trips(Payload payload, std::uint64_t count, const PollPolicy& policy) {
  std::memset(memory_.data() + kFlagOffset, 0, kSlotBytes);
  group_.barrier(exchange_deadline());
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < warm_up_of(count) + count; ++i) {
    const std::uint64_t value = target_value(seed_, i);
    const bool right = wait_for_flag({value, before}, policy);
    before = value;
    // A wrong value is answered with a wrong one: rank 0 reports it.
    send_flag(payload, right ? i : i + 1);
    reap_flag(i, policy);
  }
  group_.barrier(exchange_deadline());
}

}  // namespace belfry::bench
