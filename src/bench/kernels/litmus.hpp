#pragma once
/// \file
/// Writes with sequence numbers, looked at behind each completion, while the memory system is kept busy: what
/// a NIC fetches that was not ordered before its doorbell shows as a payload of before, or as half of one.

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
  KernelEnd end;
};

/// The first thread of each block posts on a queue of its own; the others of all blocks write and read all
/// over `traffic` until every poster has ended.
struct LitmusJob {
  device::EndpointView view;
  std::uint32_t peer = 0;
  std::uint32_t batch = 32;  ///< writes a doorbell
  std::uint64_t rounds = 0;
  device::Place source;              ///< `batch` payloads for each poster
  device::Place target;              ///< likewise, at the peer
  const std::uint64_t* landed;       ///< the target, where this kernel sees it
  std::uint64_t* traffic = nullptr;  ///< `traffic_words` words; the first counts the posters that have ended
  std::uint64_t traffic_words = 0;   ///< a power of two
  LitmusResult* results = nullptr;   ///< [block]
};

template <class Policy>
struct LitmusKernel {
  LitmusJob job;

  BELFRY_FN void operator()() const {
    if (port::thread_index() != 0) return make_traffic();
    LitmusResult result;
    post(result);
    job.results[port::block_index()] = result;
    port::fetch_add<port::Scope::gpu, port::Order::release>(job.traffic, std::uint64_t{1});
  }

 private:
  /// Of word `w` of a write: another one in every word of every write to a slot, and the same write's
  /// recognisable.
  BELFRY_FN static std::uint64_t value_of(std::uint64_t write, std::uint32_t word) {
    return write << 8 | word << 4 | 1u;
  }

  BELFRY_FN void post(LitmusResult& result) const {
    device::gda::Channel<Policy> channel(job.view, job.peer, port::block_index());
    const std::uint64_t first = std::uint64_t{port::block_index()} * job.batch;
    auto* source = reinterpret_cast<std::uint64_t*>(own_address(job.view, job.source)) + first * kLitmusWords;
    const std::uint64_t* landed = job.landed + first * kLitmusWords;
    for (std::uint64_t round = 1; round <= job.rounds; ++round) {
      device::Operation op;
      for (std::uint32_t i = 0; i < job.batch && op.ok(); ++i) {
        for (std::uint32_t w = 0; w < kLitmusWords; ++w) source[i * kLitmusWords + w] = value_of(round, w);
        const std::uint64_t at = (first + i) * kLitmusBytes;
        op = channel.put(device::Thread{}, job.target + at, job.source + at, kLitmusBytes,
                         i + 1 == job.batch ? device::gda::Announce::now : device::gda::Announce::later,
                         kKernelTimeout);
      }
      const device::Outcome outcome =
          op.ok() ? channel.wait(device::Thread{}, op, kKernelTimeout) : outcome_of(op);
      if (!outcome.ok()) {
        result.end.outcome = outcome;
        return;
      }
      port::fence<port::Scope::system>();
      for (std::uint32_t i = 0; i < job.batch; ++i) look(landed + i * kLitmusWords, round, result);
    }
  }

  BELFRY_FN static void look(const std::uint64_t* landed, std::uint64_t round, LitmusResult& result) {
    std::uint32_t right = 0;
    for (std::uint32_t w = 0; w < kLitmusWords; ++w)
      right += port::load<port::Scope::system>(landed + w) == value_of(round, w) ? 1 : 0;
    ++result.writes;
    if (right == 0) ++result.stale;
    if (right != 0 && right != kLitmusWords) ++result.torn;
  }

  BELFRY_FN void make_traffic() const {
    std::uint64_t at = port::block_index() * std::uint64_t{port::threads_a_block()} + port::thread_index();
    std::uint64_t sum = 0;
    for (std::uint32_t turn = 0;; ++turn) {
      at = at * 6364136223846793005u + 1442695040888963407u;
      std::uint64_t* word = job.traffic + 16 + (at >> 20) % (job.traffic_words - 16);
      sum += *word;
      *word = sum;
      if (turn % 64 == 0 && port::poll<port::Scope::gpu>(job.traffic) >= port::block_count()) return;
    }
  }
};

}  // namespace belfry::bench
