#pragma once
/// \file
/// What measured kernels are given, and what they leave behind: plain structs, passed by value. Pointers are
/// to memory that the kernel writes and the host reads afterwards (KernelRunner::allocate).

#include <cstdint>

#include "belfry/device/proxy/ring.hpp"
#include "belfry/device/status.hpp"
#include "belfry/device/view.hpp"
#include "bench/kernels/ticks.hpp"

namespace belfry::bench {

/// The longest that a kernel waits for one event.
inline constexpr std::uint64_t kKernelWaitSeconds = 20;

/// Slots of one size, used in turns.
struct Slots {
  device::Place begin;
  std::uint32_t stride = 8;  ///< bytes
  std::uint32_t count = 1;

  BELFRY_FN device::Place at(std::uint64_t i) const { return begin + i % count * stride; }
};

/// Slots one after the other, without a division for each.
class SlotCursor {
 public:
  BELFRY_FN explicit SlotCursor(const Slots& slots) : slots_(slots) {}
  BELFRY_FN device::Place next() {
    const device::Place place = slots_.begin + std::uint64_t{at_} * slots_.stride;
    at_ = at_ + 1 == slots_.count ? 0 : at_ + 1;
    return place;
  }

 private:
  const Slots& slots_;
  std::uint32_t at_ = 0;
};

/// How a kernel ended. All zeros: well.
struct KernelEnd {
  device::Outcome outcome;
  bool wrong = false;  ///< the kernel itself has seen a payload that was not right
};

// Jobs of both transports are alike but for the view: mini-gda's EndpointView, mini-proxy's ProxyView.

/// One thread writes `bytes` bytes at a time to a peer, one write outstanding.
template <class View>
struct PutJobOf {
  View view;
  Ticks clock;
  std::uint32_t peer = 0;
  std::uint32_t bytes = 8;
  std::uint64_t seed = 0;
  std::uint64_t warm_up = 0;  ///< writes that are not recorded, first
  std::uint64_t count = 0;
  Slots target;                    ///< write i brings target_value(seed, i), as far as it fits into `bytes`
  Slots source;                    ///< the kernel writes that value there
  std::uint64_t* issue = nullptr;  ///< [count] ticks
  std::uint64_t* completion = nullptr;  ///< [count] ticks, from before the issue
  KernelEnd* end = nullptr;
};
using PutJob = PutJobOf<device::EndpointView>;
using ProxyPutJob = PutJobOf<device::proxy::ProxyView>;

/// One thread writes a flag of 8 B and waits for the peer's, or waits and answers.
template <class View>
struct FlagJobOf {
  View view;
  Ticks clock;
  std::uint32_t peer = 0;
  std::uint64_t seed = 0;
  std::uint64_t warm_up = 0;
  std::uint64_t count = 0;
  device::Place flag;  ///< both PEs' own
  Slots source;
  std::uint64_t* round_trip = nullptr;  ///< [count] ticks; unused by the end that answers
  KernelEnd* end = nullptr;
};
using FlagJob = FlagJobOf<device::EndpointView>;
using ProxyFlagJob = FlagJobOf<device::proxy::ProxyView>;

/// One thread rings a doorbell that announces nothing new, or stores 8 B and fences.
struct DoorbellJob {
  bool fence = false;
  device::EndpointView view;
  Ticks clock;
  std::uint32_t peer = 0;
  std::uint64_t count = 0;
  std::uint64_t pause_ticks = 0;   ///< between two, so that the NIC has seen the one before
  std::uint64_t* issue = nullptr;  ///< [count] ticks
};

/// What a ScopeJob completes after each put.
enum class CompletionScope : std::uint8_t {
  queue,   ///< flush of the queue
  peer,    ///< flush of every queue to the peer
  quiet,   ///< flush of every queue
  signal,  ///< a signal behind the put, and the signal's own completion
};

/// One thread puts 8 B on queue 0 to the peer and completes them.
struct ScopeJob {
  device::EndpointView view;
  Ticks clock;
  std::uint32_t peer = 0;
  std::uint64_t seed = 0;
  std::uint64_t warm_up = 0;
  std::uint64_t count = 0;
  Slots target;
  device::Place signal;                 ///< gets 1 added for each put
  std::uint64_t* completion = nullptr;  ///< [count] ticks
  KernelEnd* end = nullptr;
};

/// Who posts together in a RateJob.
enum class Cooperation : std::uint8_t {
  thread,   ///< each thread on queues of its own
  lock,     ///< threads share a queue, one lock a WQE
  handoff,  ///< threads share a queue, slots are handed from one to the next
  warp,     ///< a warp posts as one
};

/// How one thread of a RateJob ended, and when it ran.
struct RateResult {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  KernelEnd end;
};

/// Threads post messages, `batch` of them a doorbell.
struct RateWork {
  std::uint32_t peer = 0;
  std::uint32_t queues = 1;           ///< used, of those to the peer; rings of mini-proxy
  std::uint32_t posters = 1;          ///< threads, or warps where these post as one
  std::uint32_t queues_a_thread = 1;  ///< more than 1 only where they are each thread's own
  std::uint32_t batch = 1;
  std::uint32_t bytes = 8;
  std::uint64_t messages_a_thread = 0;
  std::uint64_t seed = 0;
  Slots target;                   ///< each thread has `count` of its own, those of thread 0 first
  Slots source;                   ///< where payload comes from memory: message i is slot i's
  RateResult* results = nullptr;  ///< [thread of the grid]

  BELFRY_FN device::Place target_of(std::uint32_t thread, std::uint64_t i) const {
    return targets_of(thread).at(i);
  }
  BELFRY_FN Slots targets_of(std::uint32_t thread) const {
    Slots own = target;
    own.begin = target.begin + std::uint64_t{thread} * target.count * target.stride;
    return own;
  }
  /// Neighbours share a queue.
  BELFRY_FN std::uint32_t queue_of(std::uint32_t poster) const {
    return static_cast<std::uint32_t>(std::uint64_t{poster} * queues / posters);
  }
};
template <class View>
struct RateJobOf : RateWork {
  View view;
};
using RateJob = RateJobOf<device::EndpointView>;
using ProxyRateJob = RateJobOf<device::proxy::ProxyView>;

/// Where a put's payload is on its way from registers to the NIC.
enum class PayloadForm : std::uint8_t {
  value,    ///< never in memory: registers to WQE or descriptor
  inlined,  ///< in the window, and copied into the WQE by the thread
  pointer,  ///< in the window, and fetched by the NIC
};

/// How the lanes of a warp publish what each of them has.
enum class PublicationKind : std::uint8_t {
  lane,         ///< each by itself, whenever it comes
  lane_synced,  ///< likewise, and the lanes of a warp wait for each other after each put
  warp,         ///< the warp at once
};

/// The lanes of warps that share a queue come to each put spread in time.
struct PublicationJob : RateJob {
  Ticks clock;
  std::uint64_t spread_ticks = 0;  ///< before each put a lane works for up to so long; 0: for no time
  std::uint64_t* ticks = nullptr;  ///< [thread] in puts, all together
};

/// A probe among blocks that load; see kernels/loaded.hpp.
template <class View>
struct LoadedJobOf : FlagJobOf<View> {
  std::uint32_t queues = 2;        ///< to the peer, or rings; the probe's is number 0
  std::uint32_t workers = 1;       ///< of mini-proxy: ring r is worker r % workers' one
  bool asks = false;               ///< the probe asks, or answers
  std::uint64_t interval_ns = 0;   ///< between two messages of a background block; 0: as fast as it goes
  Slots target;                    ///< each background block has `count` of its own
  std::uint64_t* ahead = nullptr;  ///< [count] of the end that asks
  std::uint64_t* sent = nullptr;   ///< [background block]
  RateResult* results = nullptr;   ///< [background block]
  std::uint32_t* stop = nullptr;   ///< not 0 once the probe is done

  BELFRY_FN device::Place target_of(std::uint32_t block, std::uint64_t i) const {
    return target.at(i) + std::uint64_t{block} * target.count * target.stride;
  }
};
using LoadedJob = LoadedJobOf<device::EndpointView>;
using ProxyLoadedJob = LoadedJobOf<device::proxy::ProxyView>;

/// What goes into a ring.
enum class HandoffPutKind : std::uint8_t {
  tuned,               ///< tuned, payload_visible
  tuned_published,     ///< tuned, payload_published
  shared_tuned,        ///< shared_tuned, payload_visible
  baseline,            ///< baseline, payload_visible
  baseline_published,  ///< baseline, payload_published
  bare,                ///< the 16 B store alone; in bursts only
};

/// Threads fill rings that a CPU thread drains.
struct HandoffJob {
  device::proxy::ProxyView view;
  Ticks clock;
  std::uint64_t count = 0;         ///< descriptors a ring; in bursts a multiple of `burst`
  std::uint32_t burst = 0;         ///< 0: no bursts, each thread fills its ring; else one thread fills ring 0
  std::uint64_t* ticks = nullptr;  ///< [count / burst]
  RateResult* results = nullptr;   ///< [thread]
};

/// Which rate kernel is meant.
struct RateKind {
  Cooperation cooperation = Cooperation::thread;
  bool queue_shared = false;   ///< between posters
  bool across_blocks = false;  ///< posters of a queue are in several blocks
  bool no_record = false;      ///< between no posters, values from registers
  bool from_memory = false;    ///< payload from the window, with Cooperation::thread only
  bool pointer = false;        ///< fetched by the NIC, if from_memory
};

}  // namespace belfry::bench
