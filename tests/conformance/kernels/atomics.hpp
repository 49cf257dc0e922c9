#pragma once
/// \file
/// Atomics and what they return.

#include "belfry/device/announce.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// Runs fetch_add and compare_swap on one word that nobody else uses, and checks each old value. Every thread
/// of the group checks what came back.
template <class Endpoint, class Group>
struct LonelyAtomics {
  typename Endpoint::View view;
  std::uint32_t peer = 1;
  device::Place word;    ///< at the peer, 0 at first
  device::Place result;  ///< here, 8 B
  Report* reports = nullptr;

  static constexpr std::uint64_t kLarge = 0xfffffffffffffff0u;

  BELFRY_FN void operator()() const {
    Report& report = reports[grid_thread()];
    auto channel = Endpoint(view).channel(peer);
    const Group group = make_group<Group>();
    std::uint64_t step = 0;
    const auto add = [&](std::uint64_t value, std::uint64_t old) {
      const auto op = channel.fetch_add(group, result, word, value, device::Announce::now, kPatient);
      finish(report, channel, group, step++, op, old);
    };
    const auto swap = [&](std::uint64_t expected, std::uint64_t value, std::uint64_t old) {
      const auto op =
          channel.compare_swap(group, result, word, expected, value, device::Announce::now, kPatient);
      finish(report, channel, group, step++, op, old);
    };
    add(5, 0);
    add(kLarge, 5);       // wraps
    add(11, kLarge + 5);  // 0 again
    swap(1, 7, 0);        // does not match
    swap(0, kLarge, 0);   // does
    swap(kLarge, 0x1122334455667788u, kLarge);
    add(0, 0x1122334455667788u);
  }

 private:
  template <class Channel>
  BELFRY_FN void finish(Report& report, Channel& channel, Group group, std::uint64_t step,
                        const device::Operation& op, std::uint64_t old) const {
    report.note(step, op);
    report.note(step, channel.wait(group, op, kPatient));
    const auto* here = local_pointer<const std::uint64_t>(view, result);
    report.check(step, port::load<port::Scope::system>(here) == old);
    // Nobody starts the next one while others still look.
    hold(group);
  }
  BELFRY_FN static void hold(device::Thread) {}
  BELFRY_FN static void hold(device::Warp warp) { port::sync_warp(warp.mask); }
  BELFRY_FN static void hold(device::Block) { port::sync_block(); }
};

/// Every thread of every PE adds to one word of PE `peer`, and counts there by compare and swap in another.
/// The old values that fetch_add returned are kept: together they are each number once.
template <class Endpoint>
struct Contend {
  typename Endpoint::View view;
  std::uint32_t peer = 0;
  std::uint32_t queues = 1;  ///< thread t uses queue t mod this
  std::uint32_t rounds = 0;
  device::Place added;            ///< at the peer
  device::Place swapped;          ///< at the peer
  device::Place results;          ///< here, 16 B a thread
  std::uint64_t* olds = nullptr;  ///< [thread * rounds + round]
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    const std::uint32_t me = grid_thread();
    Report& report = reports[me];
    auto channel = Endpoint(view).channel(peer, me % queues);
    const auto thread = device::Thread{};
    const device::Place sum = results + me * std::uint64_t{16};
    const device::Place seen = sum + 8;
    std::uint64_t guess = 0;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const auto add = channel.fetch_add(thread, sum, added, 1, device::Announce::now, kPatient);
      if (!report.note(round, add) || !report.note(round, channel.wait(thread, add, kPatient))) return;
      olds[me * rounds + round] = port::load<port::Scope::system>(local_pointer<std::uint64_t>(view, sum));
      for (;;) {
        const auto swap =
            channel.compare_swap(thread, seen, swapped, guess, guess + 1, device::Announce::now, kPatient);
        if (!report.note(round, swap) || !report.note(round, channel.wait(thread, swap, kPatient))) return;
        const auto old = port::load<port::Scope::system>(local_pointer<std::uint64_t>(view, seen));
        const bool hit = old == guess;
        guess = hit ? guess + 1 : old;
        if (hit) break;
        ++report.values[0];  // misses
      }
    }
  }
};

}  // namespace belfry::conformance
