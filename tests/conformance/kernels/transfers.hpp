#pragma once
/// \file
/// Puts and gets of any length, by one thread, a warp or a block.

#include "belfry/device/signal.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

struct Transfer {
  device::Place remote;
  device::Place local;
  std::uint64_t bytes = 0;
};

/// One group puts each transfer, waits for every other one, and signals after the last.
template <class Endpoint, class Group>
struct PutTransfers {
  typename Endpoint::View view;
  std::uint32_t peer = 1;
  const Transfer* transfers = nullptr;
  std::uint32_t count = 0;
  device::Signal after;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    Report& report = reports[grid_thread()];
    auto channel = Endpoint(view).channel(peer);
    const Group group = make_group<Group>();
    for (std::uint32_t i = 0; i < count; ++i) {
      const Transfer& t = transfers[i];
      const device::Operation op =
          channel.put(group, t.remote, t.local, t.bytes, device::Announce::now, kPatient);
      report.note(i, op);
      if (i % 2 == 1) report.note(i, channel.wait(group, op, kPatient));
    }
    report.note(count, channel.signal(group, after, kPatient));
    report.note(count + 1, channel.flush(group, kPatient));
  }
};

/// One group gets each transfer, and then waits for each.
template <class Endpoint, class Group>
struct GetTransfers {
  static constexpr std::uint32_t kMost = 64;

  typename Endpoint::View view;
  std::uint32_t peer = 1;
  const Transfer* transfers = nullptr;
  std::uint32_t count = 0;  ///< kMost at most
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    Report& report = reports[grid_thread()];
    auto channel = Endpoint(view).channel(peer);
    const Group group = make_group<Group>();
    device::Operation ops[kMost];
    for (std::uint32_t i = 0; i < count; ++i) {
      const Transfer& t = transfers[i];
      ops[i] = channel.get(group, t.local, t.remote, t.bytes, device::Announce::now, kPatient);
      report.note(i, ops[i]);
    }
    for (std::uint32_t i = 0; i < count; ++i) report.note(100 + i, channel.wait(group, ops[i], kPatient));
  }
};

}  // namespace belfry::conformance
