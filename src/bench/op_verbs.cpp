#include "bench/op_verbs.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "belfry/host/completion.hpp"
#include "belfry/host/errors.hpp"

namespace belfry::bench {
namespace {

/// One flag write in so many asks for a CQE, the last of which frees the queue's slots; fewer than there
/// are sources, so that no source is overwritten before its write is complete.
constexpr std::uint64_t kSignalEvery = 32;
static_assert(kSignalEvery < kSources);

[[noreturn]] void throw_timed_out(const std::string& what, const PollPolicy& policy) {
  throw host::Error(host::ErrorKind::timed_out, fmt::format("no {} within {} s", what, policy.limit.count()),
                    "The other end is gone or stuck: see what it printed");
}

}  // namespace

VerbsPath::VerbsPath(const OpEnd& end, const Clock& clock, VerbsPayload payload, PollPolicy puts,
                     PollPolicy round_trips)
    : clock_(clock),
      memory_(end.endpoint().memory()),
      queue_(end.endpoint().verbs_queue(end.peer())),
      peer_(end.endpoint().window(end.peer())),
      seed_(end.seed()),
      payload_(payload),
      puts_(puts),
      round_trips_(round_trips) {}

void VerbsPath::prepare(ibv_send_wr& request, ibv_sge& segment, std::uint64_t i,
                        std::uint64_t remote_offset) {
  const std::uint64_t value = target_value(seed_, i);
  std::byte* source = memory_.data() + kSourceOffset + i % kSources * kSlotBytes;
  std::memcpy(source, &value, sizeof value);
  segment = {reinterpret_cast<std::uint64_t>(source), kSlotBytes, memory_.lkey()};
  request = {};
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = payload_ == VerbsPayload::inlined ? unsigned{IBV_SEND_INLINE} : 0u;
  request.wr.rdma.remote_addr = peer_.address + remote_offset;
  request.wr.rdma.rkey = peer_.rkey;
}

void VerbsPath::post(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  if (const int code = ibv_post_send(queue_.qp(), &request, &bad); code != 0) {
    throw host::Error(host::ErrorKind::system, fmt::format("ibv_post_send failed: {}", std::strerror(code)),
                      "The queue may have gone to the error state after an earlier failure", code);
  }
}

void VerbsPath::wait_for_completion(const PollPolicy& policy) {
  ibv_wc completion{};
  int polled = 0;
  const auto ready = [&] { return (polled = ibv_poll_cq(queue_.send_cq(), 1, &completion)) != 0; };
  if (!wait_until(ready, policy)) throw_timed_out("completion", policy);
  if (polled < 0) throw host::Error(host::ErrorKind::system, "ibv_poll_cq failed: the CQ is broken", "");
  if (completion.status != IBV_WC_SUCCESS) throw host::completion_error(host::to_completion(completion));
}

void VerbsPath::puts(std::uint64_t count, PutSamples& samples) {
  samples.issue.reserve(count);
  samples.put_completion.reserve(count);
  const std::uint64_t warm_up = warm_up_of(count);
  ibv_send_wr request;
  ibv_sge segment;
  for (std::uint64_t i = 0; i < warm_up + count; ++i) {
    prepare(request, segment, i, target_offset(i));
    request.send_flags |= IBV_SEND_SIGNALED;
    const std::uint64_t begin = clock_.now();
    post(request);
    const std::uint64_t issued = clock_.now();
    wait_for_completion(puts_);
    const std::uint64_t done = clock_.now();
    if (i < warm_up) continue;
    samples.issue.push_back(clock_.microseconds(issued - begin));
    samples.put_completion.push_back(clock_.microseconds(done - begin));
  }
}

bool VerbsPath::wait_for_flag(Wanted wanted) {
  std::atomic_ref<std::uint64_t> flag(*reinterpret_cast<std::uint64_t*>(memory_.data() + kFlagOffset));
  std::uint64_t seen = 0;
  const auto changed = [&] { return (seen = flag.load(std::memory_order_acquire)) != wanted.before; };
  if (!wait_until(changed, round_trips_)) throw_timed_out("write from the peer", round_trips_);
  return seen == wanted.value;
}

void VerbsPath::send_flag(std::uint64_t i) {
  ibv_send_wr request;
  ibv_sge segment;
  prepare(request, segment, i, kFlagOffset);
  if (i % kSignalEvery == 0) request.send_flags |= IBV_SEND_SIGNALED;
  post(request);
}

void VerbsPath::reap_flag(std::uint64_t i) {
  if (i % kSignalEvery == 0) wait_for_completion(round_trips_);
}

void VerbsPath::round_trips(std::uint64_t count, RoundTripSamples& samples) {
  samples.round_trip.reserve(count);
  const std::uint64_t warm_up = warm_up_of(count);
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < warm_up + count; ++i) {
    const std::uint64_t value = target_value(seed_, i);
    const std::uint64_t begin = clock_.now();
    send_flag(i);
    if (!wait_for_flag({value, before})) samples.verified = false;
    const std::uint64_t done = clock_.now();
    before = value;
    reap_flag(i);
    if (i >= warm_up) samples.round_trip.push_back(clock_.microseconds(done - begin));
  }
}

void VerbsPath::echo(std::uint64_t count) {
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < warm_up_of(count) + count; ++i) {
    const std::uint64_t value = target_value(seed_, i);
    const bool right = wait_for_flag({value, before});
    before = value;
    // A wrong value is answered with a wrong one: rank 0 reports it.
    send_flag(right ? i : i + 1);
    reap_flag(i);
  }
}

}  // namespace belfry::bench
