#pragma once
/// \file
/// Posting on a queue that fails, and polling it early and late.

#include "belfry/device/announce.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// What became of one operation. One an operation, in the order of posting.
struct FaultRecord {
  device::Operation operation;
  device::Outcome outcome;
  std::uint64_t elapsed_ns = 0;  ///< of the wait
  bool waited = false;
};

struct FaultPlan {
  std::uint32_t peer = 1;
  device::Place good;        ///< both ends of the puts that work
  device::Place bad_remote;  ///< and of the one that does not
  device::Place bad_local;
  std::uint32_t bytes = 8;
  std::uint32_t count = 0;  ///< puts of a thread
  std::uint32_t bad = 0;    ///< the number of the one that fails, counted over the grid's threads in turn
  bool early = false;       ///< waits for each before the next; else for all at the end
  bool backwards = false;   ///< waits for the last first
  std::uint32_t pause_turns = 0;  ///< polls of nothing between the last post and the first wait
  device::Announce announce = device::Announce::now;
  port::Timeout timeout = kPatient;
};

/// Each thread posts its puts on one shared queue. Record [thread * count + i] is its i-th.
template <class Endpoint>
struct Fail {
  typename Endpoint::View view;
  FaultPlan plan;
  FaultRecord* records = nullptr;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    const std::uint32_t me = grid_thread();
    const std::uint32_t threads = port::block_count() * port::threads_a_block();
    Report& report = reports[me];
    FaultRecord* mine = records + std::uint64_t{me} * plan.count;
    auto channel = Endpoint(view).channel(plan.peer);
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      const bool bad = i * threads + me == plan.bad;
      mine[i].operation =
          channel.put(device::Thread{}, bad ? plan.bad_remote : plan.good, bad ? plan.bad_local : plan.good,
                      plan.bytes, i + 1 == plan.count ? device::Announce::now : plan.announce, plan.timeout);
      if (plan.early) wait(channel, mine[i]);
    }
    for (std::uint32_t turn = 0; turn < plan.pause_turns; ++turn)
      static_cast<void>(port::poll<port::Scope::gpu>(&report.good));
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      FaultRecord& record = mine[plan.backwards ? plan.count - 1 - i : i];
      if (!record.waited) wait(channel, record);
    }
    // A thread that is done before another has posted the bad put would flush a queue that works.
    port::sync_block();
    const device::Outcome flushed = channel.flush(device::Thread{}, plan.timeout);
    report.note(0, flushed);
    report.outcome.fault = channel.fault();
    report.values[0] = static_cast<std::uint64_t>(flushed.status);
    // And whatever is posted now fails at once, when it is posted or when it is waited for.
    const std::uint64_t before = port::now_ns();
    const auto after =
        channel.put(device::Thread{}, plan.good, plan.good, plan.bytes, device::Announce::now, plan.timeout);
    report.values[1] = static_cast<std::uint64_t>(channel.wait(device::Thread{}, after, plan.timeout).status);
    report.elapsed_ns = port::now_ns() - before;
  }

 private:
  template <class Channel>
  BELFRY_FN void wait(Channel& channel, FaultRecord& record) const {
    const std::uint64_t before = port::now_ns();
    record.outcome = channel.wait(device::Thread{}, record.operation, plan.timeout);
    record.elapsed_ns = port::now_ns() - before;
    record.waited = true;
  }
};

/// One thread's puts of i + 1 into word i of peer 2, and among them one to peer 1 that fails, on one ring.
template <class Endpoint>
struct FailBeside {
  typename Endpoint::View view;
  device::Place words;
  device::Place bad_remote;
  std::uint32_t count = 0;
  std::uint32_t bad = 0;
  FaultRecord* records = nullptr;

  BELFRY_FN void operator()() const {
    for (std::uint32_t i = 0; i < count; ++i) {
      auto channel = Endpoint(view).channel(i == bad ? 1 : 2);
      records[i].operation =
          i == bad ? channel.put(device::Thread{}, bad_remote, words, 8)
                   : channel.put_value(device::Thread{}, words + i * std::uint64_t{8}, std::uint64_t{i} + 1);
    }
    auto channel = Endpoint(view).channel(2);
    for (std::uint32_t i = 0; i < count; ++i)
      records[i].outcome = channel.wait(device::Thread{}, records[i].operation, kPatient);
  }
};

}  // namespace belfry::conformance
