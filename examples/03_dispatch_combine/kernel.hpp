#pragma once
/// \file
/// One block on each PE: exchanges counts, sends every token to its experts, lets this PE's experts work,
/// sends the results back, and sums what came back with the tokens' weights.
///
/// A warp serves a peer at a time, and each peer has one warp: queues need no sharing. PEs send to themselves
/// too (self_queues), so that no case is special.

#include "03_dispatch_combine/layout.hpp"
#include "belfry/device/endpoint.hpp"
#include "common/report.hpp"

namespace belfry::examples {

template <class Endpoint>
struct DispatchCombine {
  typename Endpoint::View view;
  Shape shape;
  std::uint64_t round;  ///< 1 for the first
  port::Timeout timeout;
  const std::uint32_t* expert_of;  ///< [token][choice]
  const float* weight_of;          ///< [token][choice]
  std::uint32_t* sorted;           ///< scratch: the choices, sorted by expert
  std::uint32_t* place_of;         ///< scratch: where a choice is in `sorted`
  float* output;                   ///< [token]
  Report* report = nullptr;

  BELFRY_FN void operator()() const {
    const Endpoint endpoint(view);
    const Counts counts{endpoint.template local<std::uint32_t>({kCounts, 0}), shape};
    count(endpoint);
    bool good = for_each_pe([&](std::uint32_t pe) { return send_counts(endpoint, pe); });
    good = good && for_each_pe([&](std::uint32_t pe) { return await(endpoint, kCountsHere, pe, true); });
    if (!good) return;
    sort(counts);
    good = for_each_pe([&](std::uint32_t pe) { return send_tokens(endpoint, counts, pe); }) &&
           for_each_pe([&](std::uint32_t pe) {
             return await(endpoint, kTokensHere, pe, counts.to_pe(pe, view.pe) != 0);
           });
    if (!good) return;
    work(endpoint, counts);
    good = for_each_pe([&](std::uint32_t pe) { return send_results(endpoint, counts, pe); }) &&
           for_each_pe([&](std::uint32_t pe) {
             return await(endpoint, kResultsHere, pe, counts.to_pe(view.pe, pe) != 0);
           });
    if (!good) return;
    combine(endpoint);
    // No send was waited for: what the peers answered said more. This finds the errors that nobody met.
    if (port::thread_index() == 0)
      succeeded(report, Step::flush, view.pe, endpoint.quiet(device::Thread{}, timeout));
  }

 private:
  BELFRY_FN static std::uint32_t warp() { return port::thread_index() / port::kWarpSize; }
  BELFRY_FN static std::uint32_t warps() { return port::threads_a_block() / port::kWarpSize; }

  /// Calls `step` with every PE, each in one warp. A thread that met a failure must not leave the others
  /// waiting at a barrier, so all leave together. \return whether all steps of the block were good
  template <class OfPe>
  BELFRY_FN bool for_each_pe(const OfPe& step) const {
    bool good = true;
    for (std::uint32_t pe = warp(); pe < shape.pes && good; pe += warps()) good = step(pe);
    return !port::sync_block_any(!good);
  }

  /// Whether an operation of the whole warp was posted; if not, the channel says why.
  BELFRY_FN bool posted(typename Endpoint::Channel& channel, std::uint32_t pe,
                        const device::Operation& op) const {
    return op.ok() || succeeded(report, Step::put, pe, channel.wait(device::Warp{}, op, timeout));
  }
  BELFRY_FN device::Signal signal_of(Phase phase) const {
    return {signal_place(shape, phase, view.pe), round, device::SignalOperation::set};
  }
  BELFRY_FN std::uint32_t token_bytes() const { return static_cast<std::uint32_t>(shape.token_bytes()); }

  /// Fills this PE's row of the counts.
  BELFRY_FN void count(const Endpoint& endpoint) const {
    auto* row = endpoint.template local<std::uint32_t>({kCounts, row_offset(view.pe)});
    for (std::uint32_t e = port::thread_index(); e < shape.experts(); e += port::threads_a_block()) {
      std::uint32_t n = 0;
      for (std::uint32_t i = 0; i < shape.sent(); ++i) n += expert_of[i] == e ? 1u : 0u;
      row[e] = n;
    }
    port::sync_block();
  }
  BELFRY_FN std::uint64_t row_offset(std::uint32_t pe) const {
    return std::uint64_t{pe} * shape.experts() * sizeof(std::uint32_t);
  }

  BELFRY_FN bool send_counts(const Endpoint& endpoint, std::uint32_t pe) const {
    auto channel = endpoint.channel(pe);
    const device::Place row{kCounts, row_offset(view.pe)};
    return posted(channel, pe,
                  channel.put_signal(device::Warp{}, row, row, shape.experts() * sizeof(std::uint32_t),
                                     signal_of(kCountsHere), timeout));
  }

  /// Waits for a phase of a PE that has something for this one.
  BELFRY_FN bool await(const Endpoint& endpoint, Phase phase, std::uint32_t pe, bool expected) const {
    if (!expected) return true;
    const device::Status seen = endpoint.wait_signal(device::Warp{}, signal_place(shape, phase, pe),
                                                     device::Compare::greater_equal, round, timeout);
    return arrived(report, pe, seen, [&] { return endpoint.flush_peer(device::Warp{}, pe, kOneLook); });
  }

  /// Sorts the choices by expert, and remembers where each went: its result will come back to there.
  BELFRY_FN void sort(const Counts& counts) const {
    for (std::uint32_t e = port::thread_index(); e < shape.experts(); e += port::threads_a_block()) {
      std::uint32_t next = counts.order_of(view.pe, e);
      for (std::uint32_t i = 0; i < shape.sent(); ++i) {
        if (expert_of[i] != e) continue;
        sorted[next] = i;
        place_of[i] = next++;
      }
    }
    port::sync_block();
  }

  /// Sends the tokens for all experts of a PE: each lane one, a doorbell for up to 32 and more, and the
  /// signal behind all of them.
  BELFRY_FN bool send_tokens(const Endpoint& endpoint, const Counts& counts, std::uint32_t pe) const {
    const std::uint32_t begin = counts.order_of(view.pe, pe * shape.experts_a_pe);
    const std::uint32_t end = begin + counts.to_pe(view.pe, pe);
    if (begin == end) return true;  // the peer knows the counts, and waits for nothing
    // [put-each]
    auto channel = endpoint.channel(pe);
    for (std::uint32_t base = begin; base < end; base += port::kWarpSize) {
      // The last lanes may have no token. The lowest always has: it is the one that owns the queue.
      const std::uint32_t at = base + port::lane_index();
      const std::uint32_t mask = port::ballot(port::kFullWarp, at < end);
      device::Operation op;
      if (at < end)
        op = channel.put_each(device::Warp{mask}, slot_of(counts, at), token_of(at), token_bytes(),
                              device::Announce::later, timeout);
      if (port::ballot(port::kFullWarp, !op.ok()) != 0) return posted(channel, pe, op);
    }
    return posted(channel, pe, channel.signal(device::Warp{}, signal_of(kTokensHere), timeout));
    // [put-each]
  }
  BELFRY_FN device::Place token_of(std::uint32_t at) const {
    return {kTokens, sorted[at] / shape.choices * shape.token_bytes()};
  }
  BELFRY_FN device::Place slot_of(const Counts& counts, std::uint32_t at) const {
    const std::uint32_t expert = expert_of[sorted[at]];
    const std::uint64_t slot = counts.slot_of(view.pe, expert) + at - counts.order_of(view.pe, expert);
    return {kReceived, slot * shape.token_bytes()};
  }

  /// This PE's experts, one after another, over what they got from all PEs.
  BELFRY_FN void work(const Endpoint& endpoint, const Counts& counts) const {
    const auto* in = endpoint.template local<const float>({kReceived, 0});
    auto* out = endpoint.template local<float>({kResults, 0});
    const std::uint32_t first = view.pe * shape.experts_a_pe;
    for (std::uint32_t expert = first; expert < first + shape.experts_a_pe; ++expert) {
      const std::uint64_t end = std::uint64_t{counts.slot_of(shape.pes, expert)} * shape.floats;
      for (std::uint64_t i = std::uint64_t{counts.slot_of(0, expert)} * shape.floats + port::thread_index();
           i < end; i += port::threads_a_block())
        out[i] = apply_expert(expert, in[i]);
    }
    port::sync_block();
  }

  /// Sends a PE the results of its tokens. Those of one expert lie together here and there, in the same
  /// order: one put for each expert.
  BELFRY_FN bool send_results(const Endpoint& endpoint, const Counts& counts, std::uint32_t pe) const {
    if (counts.to_pe(pe, view.pe) == 0) return true;
    auto channel = endpoint.channel(pe);
    const std::uint32_t first = view.pe * shape.experts_a_pe;
    for (std::uint32_t expert = first; expert < first + shape.experts_a_pe; ++expert) {
      if (counts(pe, expert) == 0) continue;
      const device::Place from{kResults, counts.slot_of(pe, expert) * shape.token_bytes()};
      const device::Place to{kReturned, counts.order_of(pe, expert) * shape.token_bytes()};
      const device::Operation op =
          channel.put(device::Warp{}, to, from, counts(pe, expert) * shape.token_bytes(),
                      device::Announce::later, timeout);
      if (!op.ok()) return posted(channel, pe, op);
    }
    return posted(channel, pe, channel.signal(device::Warp{}, signal_of(kResultsHere), timeout));
  }

  /// The weighted sum of what came back.
  BELFRY_FN void combine(const Endpoint& endpoint) const {
    const auto* returned = endpoint.template local<const float>({kReturned, 0});
    const std::uint64_t floats = shape.floats;
    for (std::uint64_t i = port::thread_index(); i < shape.tokens * floats; i += port::threads_a_block()) {
      const std::uint64_t token = i / floats;
      float sum = 0;
      for (std::uint64_t c = token * shape.choices; c < (token + 1) * shape.choices; ++c)
        sum += weight_of[c] * returned[place_of[c] * floats + i % floats];
      output[i] = sum;
    }
  }
};

}  // namespace belfry::examples
