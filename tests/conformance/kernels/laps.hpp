#pragma once
/// \file
/// Many operations on a small queue, so that every index wraps.

#include "belfry/device/announce.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// Each thread counts up in words of its own by puts, every eighth operation adds 1 to a word of all instead.
/// It waits for some operations, and looks at others long after. values[0]: the last operation's index.
template <class Endpoint>
struct Laps {
  static constexpr std::uint32_t kWords = 64;  ///< of a thread

  typename Endpoint::View view;
  std::uint32_t peer = 1;
  std::uint32_t queues = 1;  ///< thread t uses queue t mod this
  std::uint32_t count = 0;   ///< operations of a thread
  device::Place words;       ///< at the peer
  device::Place total;       ///< at the peer
  device::Place results;     ///< here, 8 B a thread
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    using device::Announce;
    const std::uint32_t me = grid_thread();
    Report& report = reports[me];
    auto channel = Endpoint(view).channel(peer, me % queues);
    device::Operation old;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto announce = i % 3 == 0 ? Announce::now : Announce::later;
      const device::Place word = words + (std::uint64_t{me} * kWords + i % kWords) * 8;
      const device::Operation op =
          i % 8 == 7 ? channel.fetch_add(device::Thread{}, results + me * std::uint64_t{8}, total, 1,
                                         announce, kPatient)
                     : channel.put_value(device::Thread{}, word, std::uint64_t{i} + 1, announce, kPatient);
      if (!report.note(i, op)) return;
      if (i % 1009 == 0) old = op;
      if (i % 257 == 0 && !report.note(i, wait(channel, op, announce))) return;
      if (i % 1009 == 500 && !report.note(i, wait(channel, old, Announce::later))) return;
      report.values[0] = op.index;
    }
    report.note(count, channel.flush(device::Thread{}, kPatient));
  }

 private:
  template <class Channel>
  BELFRY_FN static device::Outcome wait(Channel& channel, const device::Operation& op,
                                        device::Announce announce) {
    if (announce == device::Announce::later) {
      const device::Outcome flushed = channel.flush(device::Thread{}, kPatient);
      if (!flushed.ok()) return flushed;
    }
    return channel.wait(device::Thread{}, op, kPatient);
  }
};

}  // namespace belfry::conformance
