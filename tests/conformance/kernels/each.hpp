#pragma once
/// \file
/// One operation for each lane of a warp, with one doorbell for all.

#include "belfry/device/announce.hpp"
#include "belfry/device/signal.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// Which lanes take part in a round, and how many bytes each puts.
struct EachRound {
  std::uint32_t mask = port::kFullWarp;
  std::uint32_t base_bytes = 8;  ///< lane l puts base + step * l
  std::uint32_t step_bytes = 0;
};

/// Run by one warp. Round r of lane l puts from and to offset (r * 32 + l) * stride, and its round number and
/// lane by value right behind where the payload may end.
template <class Endpoint>
struct PutEach {
  typename Endpoint::View view;
  std::uint32_t peer = 1;
  device::Place base;        ///< the same in both windows
  std::uint64_t stride = 0;  ///< B; its last 8 are the value's
  const EachRound* rounds = nullptr;
  std::uint32_t count = 0;
  device::Signal after;
  Report* reports = nullptr;

  BELFRY_FN static std::uint64_t value_of(std::uint32_t round, std::uint32_t lane) {
    return mixed(std::uint64_t{round} << 32 | lane);
  }

  BELFRY_FN void operator()() const {
    using device::Announce;
    const std::uint32_t lane = port::lane_index();
    Report& report = reports[grid_thread()];
    {
      // The queue is its lowest lane's while a mask uses it, so each round has a channel of its own.
      for (std::uint32_t r = 0; r < count; ++r) {
        const EachRound& round = rounds[r];
        if ((round.mask >> lane & 1u) != 0) one_round(report, round, r, lane);
        port::sync_warp(port::kFullWarp);
      }
    }
    if (lane != 0) return;
    auto channel = Endpoint(view).channel(peer);
    report.note(1000, channel.signal(device::Thread{}, after, kPatient));
    report.note(1001, channel.flush(device::Thread{}, kPatient));
  }

 private:
  BELFRY_FN void one_round(Report& report, const EachRound& round, std::uint32_t r,
                           std::uint32_t lane) const {
    using device::Announce;
    auto channel = Endpoint(view).channel(peer);
    const device::Warp warp{round.mask};
    const device::Place at = base + (std::uint64_t{r} * port::kWarpSize + lane) * stride;
    const std::uint32_t bytes = round.base_bytes + round.step_bytes * lane;
    const Announce announce = r % 3 == 1 ? Announce::later : Announce::now;
    const auto put = channel.put_each(warp, at, at, bytes, announce, kPatient);
    report.note(r, put);
    const auto value =
        channel.put_value_each(warp, at + (stride - 8), value_of(r, lane), Announce::now, kPatient);
    report.note(100 + r, value);
    // Waiting together for what the highest lane posted covers all of them.
    const device::Operation last = last_of(round.mask, value);
    report.note(200 + r, channel.wait(warp, last, kPatient));
    // And each lane may ask for its own.
    report.note(300 + r, ask(channel, round.mask, put));
  }
  BELFRY_FN static device::Operation last_of(std::uint32_t mask, device::Operation op) {
    const std::uint32_t lane = port::last_lane(mask);
    op.status = port::shuffle(mask, op.status, lane);
    op.index = port::shuffle(mask, op.index, lane);
    return op;
  }
  /// The lowest lane asks for each lane's operation in turn: under Sharing::exclusive only it may.
  template <class Channel>
  BELFRY_FN static device::Outcome ask(Channel& channel, std::uint32_t mask, const device::Operation& mine) {
    device::Outcome first;
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      device::Operation op = mine;
      op.index = port::shuffle(mask, op.index, port::first_lane(left));
      const device::Outcome o = channel.wait(device::Warp{mask}, op, kPatient);
      if (first.ok() && !o.ok()) first = o;
    }
    return first;
  }
};

/// Run by one warp on a queue that its puts fill. Every other time a put that nobody announces lies before
/// them.
template <class Endpoint>
struct FillRing {
  typename Endpoint::View view;
  std::uint32_t peer = 1;
  device::Place base;        ///< the same in both windows
  std::uint64_t stride = 0;  ///< B a lane
  std::uint32_t bytes = 0;
  std::uint32_t count = 0;
  device::Place extra;  ///< 8 B at the peer: counts up by the puts before
  device::Signal after;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    using device::Announce;
    Report& report = reports[grid_thread()];
    const device::Warp warp;
    auto channel = Endpoint(view).channel(peer);
    const device::Place at = base + port::lane_index() * stride;
    for (std::uint32_t r = 0; r < count; ++r) {
      if (r % 2 == 1)
        report.note(r, channel.put_value(warp, extra, std::uint64_t{r}, Announce::later, kPatient));
      report.note(
          r, channel.put_each(warp, at, at, bytes, r % 4 < 2 ? Announce::now : Announce::later, kPatient));
    }
    report.note(count, channel.signal(warp, after, kPatient));
    report.note(count + 1, channel.flush(warp, kPatient));
  }
};

}  // namespace belfry::conformance
