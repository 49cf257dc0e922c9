#pragma once
/// \file
/// Writes with sequence numbers, looked at behind each completion, while the memory system is kept busy: what
/// a NIC fetches that was not ordered before its doorbell shows as a payload of before, or as half of one.

#include <type_traits>

#include "belfry/device/gda.hpp"
#include "bench/kernels/jobs.hpp"
#include "bench/kernels/put.hpp"

namespace belfry::bench {

inline constexpr std::uint32_t kLitmusWords = 4;  ///< of 8 B, in a payload
inline constexpr std::uint32_t kLitmusBytes = kLitmusWords * 8;

struct LitmusResult {
  std::uint64_t writes = 0;
  std::uint64_t stale = 0;  ///< payloads that are not this write's
  std::uint64_t torn = 0;   ///< payloads of more than one write
  /// WQEs that made no sense to the NIC: parts of two, or of none. The queue is lost, and its poster ends.
  std::uint64_t refused = 0;
  KernelEnd end;
};

/// The first warp of each of the first `posters` blocks posts on a queue of its own: its first thread alone,
/// or each lane its own writes with one doorbell for all. All other threads write all over `traffic` until
/// every poster has ended.
struct LitmusJob {
  device::EndpointView view;
  std::uint32_t peer = 0;
  std::uint32_t posters = 1;
  bool is_control = false;   ///< a NIC that refuses a WQE is a finding, and no failure
  std::uint32_t lanes = 1;   ///< that post: 1, or a whole warp
  std::uint32_t batch = 1;   ///< writes of a lane for a doorbell
  bool from_memory = false;  ///< payloads of kLitmusBytes that the NIC fetches; else 8 B in the WQE
  std::uint64_t rounds = 0;
  device::Place source;              ///< `batch` payloads for each lane of each poster
  device::Place target;              ///< likewise, at the peer
  const std::uint64_t* landed;       ///< the target, where this kernel sees it
  std::uint64_t* traffic = nullptr;  ///< `traffic_words` words; the first counts the posters that have ended
  std::uint64_t traffic_words = 0;   ///< a power of two
  LitmusResult* results = nullptr;   ///< [poster * lanes + lane]
};

template <class Policy>
struct LitmusKernel {
  LitmusJob job;

  BELFRY_FN void operator()() const {
    const std::uint32_t block = port::block_index();
    const std::uint32_t lane = port::thread_index();
    if (block >= job.posters || lane >= port::kWarpSize) return make_traffic();
    if (lane >= job.lanes) return;
    LitmusResult result;
    if (job.lanes == 1) {
      post(device::Thread{}, block, result);
    } else {
      post(device::Warp{}, block * job.lanes + lane, result);
    }
    job.results[block * job.lanes + lane] = result;
    port::fetch_add<port::Scope::gpu, port::Order::release>(job.traffic, std::uint64_t{1});
  }

 private:
  /// Of word `w` of a write: another one in every word of every write to a slot, and the same write's
  /// recognisable.
  BELFRY_FN static std::uint64_t value_of(std::uint64_t write, std::uint32_t word) {
    return write << 8 | word << 4 | 1u;
  }

  BELFRY_FN std::uint32_t words() const { return job.from_memory ? kLitmusWords : 1; }

  /// \param me the poster's number, or the lane's among all
  template <class Group>
  BELFRY_FN void post(Group group, std::uint32_t me, LitmusResult& result) const {
    device::gda::Channel<Policy> channel(job.view, job.peer, port::block_index());
    const std::uint64_t first = std::uint64_t{me} * job.batch;
    const std::uint64_t* landed = job.landed + first * kLitmusWords;
    for (std::uint64_t round = 1; round <= job.rounds; ++round) {
      device::Operation op;
      for (std::uint32_t i = 0; i < job.batch && op.ok(); ++i)
        op = put(group, channel, first + i, round,
                 i + 1 == job.batch ? device::gda::Announce::now : device::gda::Announce::later);
      // All that was posted: a lane's own operation may not be the last one.
      const device::Outcome outcome = op.ok() ? channel.flush(group, kKernelTimeout) : outcome_of(op);
      if (outcome.status == device::Status::completion_error && job.is_control) {
        ++result.writes;
        if (port::thread_index() == 0) ++result.refused;
        return;
      }
      if (!outcome.ok()) {
        result.end.outcome = outcome;
        return;
      }
      port::fence<port::Scope::system>();
      for (std::uint32_t i = 0; i < job.batch; ++i) look(landed + i * kLitmusWords, round, result);
    }
  }

  template <class Group, class Channel>
  BELFRY_FN device::Operation put([[maybe_unused]] Group group, Channel& channel, std::uint64_t slot,
                                  std::uint64_t round, device::gda::Announce announce) const {
    const device::Place remote = job.target + slot * kLitmusBytes;
    const device::Place local = job.source + slot * kLitmusBytes;
    if (job.from_memory) {
      auto* source = reinterpret_cast<std::uint64_t*>(own_address(job.view, local));
      for (std::uint32_t w = 0; w < kLitmusWords; ++w) source[w] = value_of(round, w);
    }
    if constexpr (std::is_same_v<Group, device::Warp>) {
      if (job.from_memory)
        return channel.put_each(group, remote, local, kLitmusBytes, announce, kKernelTimeout);
      return channel.put_value_each(group, remote, value_of(round, 0), announce, kKernelTimeout);
    } else {
      if (job.from_memory) return channel.put(group, remote, local, kLitmusBytes, announce, kKernelTimeout);
      return channel.put_value(group, remote, value_of(round, 0), announce, kKernelTimeout);
    }
  }

  BELFRY_FN void look(const std::uint64_t* landed, std::uint64_t round, LitmusResult& result) const {
    std::uint32_t right = 0;
    for (std::uint32_t w = 0; w < words(); ++w)
      right += port::load<port::Scope::system>(landed + w) == value_of(round, w) ? 1 : 0;
    ++result.writes;
    if (right == 0) ++result.stale;
    if (right != 0 && right != words()) ++result.torn;
  }

  /// Stores only: a thread that waits for loads keeps little under way.
  BELFRY_FN void make_traffic() const {
    constexpr std::uint32_t kStores = 8;
    std::uint32_t at = (port::block_index() * port::threads_a_block() + port::thread_index()) * 2654435761u;
    // The upper half, in units of 16 B.
    const std::uint64_t units = job.traffic_words / 4;
    auto* const area = reinterpret_cast<port::Vector16*>(job.traffic + job.traffic_words / 2);
    for (std::uint32_t turn = 0;; ++turn) {
      for (std::uint32_t i = 0; i < kStores; ++i) {
        at = at * 1664525u + 1013904223u;
        port::store_segment(area + ((at >> 4) & (units - 1)), {at, turn});
      }
      if (turn % 16 == 0 && port::poll<port::Scope::gpu>(job.traffic) >= job.posters * job.lanes) return;
    }
  }
};

}  // namespace belfry::bench
