#pragma once
/// \file
/// A ring with its device side and its service, and no thread.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "belfry/device/proxy.hpp"
#include "proxy/fake_submitter.hpp"
#include "proxy/ring_service.hpp"

namespace belfry::proxy::test {

using device::Operation;
using device::Outcome;
using device::Place;
using device::Status;
using device::Thread;

constexpr port::Timeout kShort = port::Timeout::milliseconds(5);

struct SharedTuned : device::proxy::DefaultProxyPolicy {
  static constexpr auto protocol = device::proxy::Protocol::shared_tuned;
};
struct Baseline : device::proxy::DefaultProxyPolicy {
  static constexpr auto protocol = device::proxy::Protocol::baseline;
};
struct TunedVisible : device::proxy::DefaultProxyPolicy {
  static constexpr auto form = device::proxy::Form::payload_visible;
};
using Tuned = device::proxy::DefaultProxyPolicy;
/// As on a GPU.
struct TunedRemembering : device::proxy::DefaultProxyPolicy {
  static constexpr bool remember_windows = true;
};

/// PE 0 of three; queues 0 and 1 of the submitter lead to PEs 1 and 2.
struct Rig {
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 34;

  explicit Rig(std::uint32_t log_slots = 4, std::uint64_t start = 0, ServiceOptions options = {},
               std::uint64_t max_message = 1 << 30) {
    slots.resize(std::size_t{1} << log_slots);
    state.reserved = state.taken = taken = words.completed = start;
    // Slots of a ring that has been in use: the lap before the one that begins.
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::uint64_t index = start / slots.size() * slots.size() + i;
      const bool current = index < start;
      slots[i].low = wire::proxy_parity((index >> log_slots) + (current ? 0 : 1));
    }
    ring.slots = slots.data();
    ring.taken = &taken;
    ring.words = &words;
    ring.state = &state;
    ring.log_slots = log_slots;
    for (auto& w : windows) w = {0x1000'0000'0000u, kWindowBytes, Be32(0x11), 0};
    view.pe_count = 3;
    view.ring_count = 1;
    view.window_count = 2;
    view.rings = &ring;
    view.windows = windows;
    Routes routes;
    routes.windows.assign(windows, windows + 2);
    for (std::uint64_t i = 0; i < 6; ++i)
      routes.remotes.push_back(
          {0x2000'0000'0000u + (i << 40), Be32(static_cast<std::uint32_t>(0x20 + i)), 0});
    routes.queues = {Routes::kNoQueue, 0, 1};
    routes.max_message = max_message;
    service = std::make_unique<RingService>(RingReader(slots.data(), log_slots, &taken, start), routes,
                                            std::make_unique<MappedCounter>(&words), options);
  }

  /// A worker's round.
  void round() {
    service->serve(nic);
    std::vector<WorkCompletion> all(64);
    const std::size_t count = nic.poll(all);
    for (std::size_t i = 0; i < count; ++i) service->complete(nic, all[i]);
  }
  /// Rounds with a NIC that executes everything, until nothing moves.
  void settle() {
    for (int i = 0; i < 200; ++i) {
      round();
      nic.execute(0);
      nic.execute(1);
    }
  }

  std::vector<port::Vector16> slots;
  std::uint64_t taken = 0;
  device::proxy::WorkerWords words{};
  device::proxy::RingState state{};
  device::LocalWindow windows[2];
  device::proxy::Ring ring;
  device::proxy::ProxyView view;
  FakeSubmitter nic{2};
  std::unique_ptr<RingService> service;
};

}  // namespace belfry::proxy::test
