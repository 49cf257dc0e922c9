#pragma once
/// \file
/// One block on each PE relaxes its tile, step by step, and exchanges its edges with up to four neighbours in
/// each. Edges travel while the block works on the cells that do not need them.

#include "04_halo_exchange/grid.hpp"
#include "belfry/device/endpoint.hpp"
#include "common/report.hpp"

namespace belfry::examples {

/// The windows, in the order in which main() lists them.
enum Window : std::uint32_t {
  kOutbox,  ///< [parity of the step][side][cell]: edges of this tile, side by side
  kInbox,   ///< the same: edges of the neighbours
  kFlags,   ///< [side]: the number of the last step whose edge is here
};

template <class Endpoint>
struct HaloExchange {
  typename Endpoint::View view;
  PeGrid grid;
  std::uint64_t steps;
  port::Timeout timeout;
  double* tile;  ///< (n + 2) x (n + 2); the result is here if `steps` is even, else in `other`
  double* other;
  Report* report = nullptr;

  BELFRY_FN void operator()() const {
    const Endpoint endpoint(view);
    // Threads 0 to 3 speak for a side each, with a channel of their own for as long as the kernel runs.
    const std::uint32_t side = port::thread_index();
    const std::uint32_t peer = grid.neighbour(view.pe, side);
    {
      auto channel = endpoint.channel(peer);  // to nobody, for most threads: never used
      double* from = tile;
      double* to = other;
      for (std::uint64_t step = 1; step <= steps; ++step) {
        pack(endpoint, from, step);
        bool good = peer == kNobody || send(channel, peer, side, step);
        update(from, to, false);
        good = good && (peer == kNobody || receive(endpoint, channel, peer, side, step));
        // [leave-together]
        // The barrier makes what one thread has waited for visible to all. And a thread that met a failure
        // must not leave the others waiting here for ever: all learn of it, and all leave.
        if (port::sync_block_any(!good)) return;
        // [leave-together]
        unpack(endpoint, from, step);
        update(from, to, true);
        double* const swapped = from;
        from = to;
        to = swapped;
      }
      if (peer != kNobody) succeeded(report, Step::flush, peer, channel.flush(device::Thread{}, timeout));
    }
  }

 private:
  BELFRY_FN std::uint64_t edge_bytes() const { return std::uint64_t{grid.n} * sizeof(double); }

  /// Two outboxes and two inboxes, used in turns, are enough without waiting for a single completion. A peer
  /// sends step s + 2 once it has had our s + 1, which we send after unpacking its s; so its s + 2 finds the
  /// inbox of s free. And we pack s + 2 once we have had its s + 1, which it sent after our s had come.
  BELFRY_FN device::Place box(Window window, std::uint64_t step, std::uint32_t side) const {
    return {window, ((step & 1) * kSides + side) * edge_bytes()};
  }

  /// The i-th cell along a side, `depth` cells from the frame (0: the frame itself).
  BELFRY_FN std::uint64_t along(std::uint32_t side, std::uint32_t i, std::uint32_t depth) const {
    const std::uint32_t near = depth, far = grid.n + 1 - depth;
    if (side == kNorth) return cell(grid.n, near, i + 1);
    if (side == kSouth) return cell(grid.n, far, i + 1);
    if (side == kWest) return cell(grid.n, i + 1, near);
    return cell(grid.n, i + 1, far);
  }

  /// Copies the tile's edges into the outbox: a column has to become contiguous to be sent by one put.
  BELFRY_FN void pack(const Endpoint& endpoint, const double* from, std::uint64_t step) const {
    for (std::uint32_t s = 0; s < kSides; ++s) {
      auto* out = endpoint.template local<double>(box(kOutbox, step, s), grid.n);
      for (std::uint32_t i = port::thread_index(); i < grid.n; i += port::threads_a_block())
        out[i] = from[along(s, i, 1)];
    }
    port::sync_block();  // what the block has stored comes before what one thread sends
  }

  template <class Channel>
  BELFRY_FN bool send(Channel& channel, std::uint32_t peer, std::uint32_t side, std::uint64_t step) const {
    // Our northern edge is the peer's southern halo.
    const device::Signal signal{{kFlags, opposite(side) * 8}, step, device::SignalOperation::set};
    const device::Operation op = channel.put_signal(device::Thread{}, box(kInbox, step, opposite(side)),
                                                    box(kOutbox, step, side), edge_bytes(), signal, timeout);
    return op.ok() || succeeded(report, Step::put, peer, channel.wait(device::Thread{}, op, timeout));
  }

  template <class Channel>
  BELFRY_FN bool receive(const Endpoint& endpoint, Channel& channel, std::uint32_t peer, std::uint32_t side,
                         std::uint64_t step) const {
    const device::Status seen = endpoint.wait_signal(device::Thread{}, {kFlags, side * 8},
                                                     device::Compare::greater_equal, step, timeout);
    return arrived(report, peer, seen, [&] { return channel.flush(device::Thread{}, kOneLook); });
  }

  /// Copies the neighbours' edges into the frame. Where there is no neighbour it stays as it is.
  BELFRY_FN void unpack(const Endpoint& endpoint, double* to, std::uint64_t step) const {
    for (std::uint32_t s = 0; s < kSides; ++s) {
      if (grid.neighbour(view.pe, s) == kNobody) continue;
      const auto* in = endpoint.template local<const double>(box(kInbox, step, s), grid.n);
      for (std::uint32_t i = port::thread_index(); i < grid.n; i += port::threads_a_block())
        to[along(s, i, 0)] = in[i];
    }
    port::sync_block();
  }

  /// Relaxes the cells that touch the frame, or those that do not.
  BELFRY_FN void update(const double* from, double* to, bool edges) const {
    const std::uint32_t n = grid.n;
    for (std::uint64_t i = port::thread_index(); i < std::uint64_t{n} * n; i += port::threads_a_block()) {
      const std::uint64_t row = i / n + 1, column = i % n + 1;
      const bool is_edge = row == 1 || row == n || column == 1 || column == n;
      if (is_edge != edges) continue;
      to[cell(n, row, column)] = relax(from, cell(n, row, column), n + 2);
    }
    if (edges) port::sync_block();
  }
};

}  // namespace belfry::examples
