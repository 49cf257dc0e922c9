#pragma once
/// \file
/// Two threads, one on each PE, throw a payload to and fro with put_signal and wait_signal.

#include "belfry/device/endpoint.hpp"
#include "common/report.hpp"

namespace belfry::examples {

enum Window : std::uint32_t { kOutbox, kInbox, kFlags };

template <class Endpoint>
struct PingPong {
  typename Endpoint::View view;
  std::uint64_t bytes;  ///< at least 8: the payload begins with the number of the round
  std::uint64_t rounds;
  port::Timeout timeout;
  std::uint64_t* round_trips_ns;  ///< one for each round, written by PE 0
  std::uint64_t* wrong;           ///< payloads that were not those of their round
  Report* report = nullptr;

  BELFRY_FN void operator()() const {
    const Endpoint endpoint(view);
    auto channel = endpoint.channel(1 - endpoint.pe());
    auto* outgoing = endpoint.template local<std::uint64_t>({kOutbox, 0});
    const auto* incoming = endpoint.template local<const std::uint64_t>({kInbox, 0});
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const std::uint64_t start = port::now_ns();
      if (endpoint.pe() == 0) {
        // The outbox may be written although no completion was waited for: the last answer says that the
        // peer has had the payload, so the NIC here has read it.
        *outgoing = round;
        if (!throw_ball(channel, round)) return;
        if (!catch_ball(endpoint, channel, round)) return;
        round_trips_ns[round - 1] = port::now_ns() - start;
        if (*incoming != round) ++*wrong;
      } else {
        if (!catch_ball(endpoint, channel, round)) return;
        // Looked at before it goes back: the answer lets the peer send the next one into the same inbox.
        *outgoing = *incoming;
        if (*outgoing != round) ++*wrong;
        if (!throw_ball(channel, round)) return;
      }
    }
    succeeded(report, Step::flush, 1 - endpoint.pe(), channel.flush(device::Thread{}, timeout));
  }

 private:
  template <class Channel>
  BELFRY_FN bool throw_ball(Channel& channel, std::uint64_t round) const {
    // [put-signal]
    // `set`, for nobody else writes this flag: an 8 B write in place of an atomic.
    const device::Signal signal{{kFlags, 0}, round, device::SignalOperation::set};
    const device::Operation op =
        channel.put_signal(device::Thread{}, {kInbox, 0}, {kOutbox, 0}, bytes, signal, timeout);
    // [put-signal]
    if (op.ok()) return true;
    return succeeded(report, Step::put, 1 - view.pe, channel.wait(device::Thread{}, op));
  }
  template <class Channel>
  BELFRY_FN bool catch_ball(const Endpoint& endpoint, Channel& channel, std::uint64_t round) const {
    const device::Status seen =
        endpoint.wait_signal(device::Thread{}, {kFlags, 0}, device::Compare::greater_equal, round, timeout);
    return arrived(report, 1 - view.pe, seen, [&] { return channel.flush(device::Thread{}, kOneLook); });
  }
};

}  // namespace belfry::examples
