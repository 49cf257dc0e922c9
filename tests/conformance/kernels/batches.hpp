#pragma once
/// \file
/// Batches that are announced later, and every way to wait for them.

#include "belfry/device/announce.hpp"
#include "belfry/device/signal.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

enum class Finish : std::uint32_t { flush, flush_peer, quiet, wait_last, test_last, later_then_now, count_ };

/// One thread posts batches of value puts that nobody announces, and finishes each in one of the ways. Value
/// i of the run goes to word i. values[0] counts batches of which a part was complete before it was
/// announced.
template <class Endpoint>
struct Batches {
  typename Endpoint::View view;
  std::uint32_t peer = 1;
  device::Place words;
  std::uint32_t batch = 0;
  std::uint32_t count = 0;  ///< of batches
  device::Signal after;
  Report* reports = nullptr;

  BELFRY_FN static std::uint64_t value_of(std::uint64_t i) { return mixed(i + 77); }

  BELFRY_FN void operator()() const {
    using device::Announce;
    Report& report = reports[grid_thread()];
    Endpoint endpoint(view);
    std::uint64_t posted = 0;
    for (std::uint32_t b = 0; b < count; ++b) {
      const auto how = static_cast<Finish>(b % static_cast<std::uint32_t>(Finish::count_));
      device::Operation last;
      {
        auto channel = endpoint.channel(peer);
        for (std::uint32_t i = 0; i < batch; ++i, ++posted) {
          const bool tells = i + 1 == batch && (how == Finish::wait_last || how == Finish::test_last);
          last = channel.put_value(device::Thread{}, words + posted * 8, value_of(posted),
                                   tells ? Announce::now : Announce::later, kPatient);
          report.note(b, last);
        }
        if (how == Finish::later_then_now) {
          const auto nothing = channel.put(device::Thread{}, words, words, 0, Announce::now, kPatient);
          report.note(100 + b, nothing);
          report.note(100 + b, channel.wait(device::Thread{}, last, kPatient));
        } else if (how == Finish::flush) {
          report.note(100 + b, channel.flush(device::Thread{}, kPatient));
          report.note(100 + b, channel.test(last));
        } else if (how == Finish::wait_last) {
          report.note(100 + b, channel.wait(device::Thread{}, last, kPatient));
        } else if (how == Finish::test_last) {
          report.note(100 + b, test_until_done(channel, last));
        }
      }
      // These use channels of their own, so ours is gone by now.
      if (how == Finish::flush_peer)
        report.note(100 + b, endpoint.flush_peer(device::Thread{}, peer, kPatient));
      if (how == Finish::quiet) report.note(100 + b, endpoint.quiet(device::Thread{}, kPatient));
      auto channel = endpoint.channel(peer);
      report.note(200 + b, channel.test(last));
    }
    auto channel = endpoint.channel(peer);
    report.note(1000, channel.signal(device::Thread{}, after, kPatient));
    report.note(1001, channel.flush(device::Thread{}, kPatient));
    // Nothing is left, so this must not need the NIC.
    report.note(1002, channel.flush(device::Thread{}, port::Timeout{0}));
  }

 private:
  template <class Channel>
  BELFRY_FN static device::Outcome test_until_done(Channel& channel, const device::Operation& op) {
    port::Patience patience(kPatient);
    for (;;) {
      const device::Outcome o = channel.test(op);
      if (o.status != device::Status::timed_out || patience.is_over()) return o;
    }
  }
};

}  // namespace belfry::conformance
