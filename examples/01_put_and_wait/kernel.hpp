#pragma once
/// \file
/// One thread writes to a peer, waits until that is acknowledged, and signals; then it waits for the signal
/// of the PE that writes to it.

#include "belfry/device/endpoint.hpp"
#include "common/report.hpp"

namespace belfry::examples {

/// The windows, in the order in which main() lists them.
enum Window : std::uint32_t { kOutbox, kInbox, kFlags };

template <class Endpoint>
struct PutAndWait {
  typename Endpoint::View view;
  std::uint64_t bytes;
  port::Timeout timeout;
  Report* report = nullptr;

  BELFRY_FN void operator()() const {
    const Endpoint endpoint(view);
    const std::uint32_t right = (endpoint.pe() + 1) % endpoint.pe_count();
    const std::uint32_t left = (endpoint.pe() + endpoint.pe_count() - 1) % endpoint.pe_count();
    constexpr device::Thread kMe;
    constexpr device::Place kFlag{kFlags, 0};

    // [put-and-wait]
    auto channel = endpoint.channel(right);
    const device::Operation put = channel.put(kMe, {kInbox, 0}, {kOutbox, 0}, bytes);
    const device::Outcome sent = channel.wait(kMe, put, timeout);
    // [put-and-wait]
    if (!succeeded(report, Step::wait, right, sent)) return;
    // Acknowledged: the outbox may be written again. But that is not yet news for the peer's threads. They
    // learn from a signal, which on the same channel covers everything that was posted before it.
    const device::Operation signal = channel.signal(kMe, {kFlag});
    if (!succeeded(report, Step::signal, right, channel.wait(kMe, signal, timeout))) return;

    // [wait-signal]
    const device::Status seen = endpoint.wait_signal(kMe, kFlag, device::Compare::greater_equal, 1, timeout);
    // [wait-signal]
    arrived(report, left, seen, [&] { return channel.flush(kMe, kOneLook); });
  }
};

}  // namespace belfry::examples
