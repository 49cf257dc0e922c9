/// \file
/// mini-proxy over the software NIC, PEs as threads.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "belfry/device/proxy.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "belfry/proxy/endpoint.hpp"

namespace belfry::proxy {
namespace {

using device::Compare;
using device::Place;
using device::Signal;
using device::SignalOperation;
using device::Thread;

constexpr std::size_t kWindowBytes = 1 << 20;

/// Runs `body` on every PE, in threads, with a connected endpoint.
template <class Body>
void on_pes(int pes, const EndpointOptions& options, Body body) {
  auto members = host::make_thread_bootstrap(pes);
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&options, &body, &member] {
      try {
        const host::ProtectionDomain domain(host::Context::open());
        host::WindowOptions window;
        window.bytes = kWindowBytes;
        const host::Windows windows(*member, domain, std::span(&window, 1));
        Endpoint endpoint(*member, windows, options);
        body(endpoint, windows);
        member->barrier(host::deadline_after(std::chrono::seconds(60)));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      member.reset();
    });
  }
  for (auto& thread : threads) thread.join();
}

// Fault: anything between a kernel's put and the peer's memory, the signal included.
TEST(NicProxy, PutsSignalsReadsAndAtomicsBetweenTwoPes) {
  EndpointOptions options;
  options.rings = 2;
  options.workers = 2;
  options.max_message = 4096;
  on_pes(2, options, [](Endpoint& endpoint, const host::Windows& windows) {
    const device::proxy::Endpoint<> device(endpoint.view());
    const std::uint32_t peer = 1 - device.pe();
    std::byte* mine = windows.memory(0).data();
    auto channel = device.channel(peer, 1);
    for (std::uint64_t round = 1; round <= 50; ++round) {
      for (std::size_t i = 0; i < 10000; ++i)
        mine[65536 + i] = static_cast<std::byte>(round * 7 + i + device.pe());
      ASSERT_TRUE(channel.put_signal(Thread{}, {0, 131072}, {0, 65536}, 10000, Signal{{0, 0}, 1}).ok());
      ASSERT_EQ(device.wait_signal(Thread{}, {0, 0}, Compare::equal, round, port::Timeout::seconds(20)),
                device::Status::done);
      for (std::size_t i = 0; i < 10000; ++i)
        ASSERT_EQ(mine[131072 + i], static_cast<std::byte>(round * 7 + i + peer)) << round << " at " << i;
      // The peer may overwrite what was just checked only when it knows.
      ASSERT_TRUE(channel.signal(Thread{}, Signal{{0, 8}, round, SignalOperation::set}).ok());
      ASSERT_EQ(device.wait_signal(Thread{}, {0, 8}, Compare::equal, round, port::Timeout::seconds(20)),
                device::Status::done);
    }
    ASSERT_TRUE(channel.wait(Thread{}, channel.put_value(Thread{}, {0, 64}, std::uint64_t{0x1234})).ok());
    ASSERT_TRUE(channel.wait(Thread{}, channel.get(Thread{}, {0, 72}, {0, 64}, 8)).ok());
    ASSERT_TRUE(channel.wait(Thread{}, channel.fetch_add(Thread{}, {0, 80}, {0, 96}, 5)).ok());
    ASSERT_TRUE(channel.wait(Thread{}, channel.compare_swap(Thread{}, {0, 88}, {0, 96}, 5, 9)).ok());
    std::uint64_t words[3];
    std::memcpy(words, mine + 72, sizeof words);
    EXPECT_EQ(words[0], 0x1234u);
    EXPECT_EQ(words[1], 0u);
    EXPECT_EQ(words[2], 5u);
    EXPECT_TRUE(device.quiet(Thread{}, port::Timeout::seconds(20)).ok());
  });
}

// Fault: one ring's dead queue that takes the others with it.
TEST(NicProxy, AFailedRingHarmsNoOther) {
  EndpointOptions options;
  options.rings = 2;
  options.self_queues = true;
  on_pes(1, options, [](Endpoint& endpoint, const host::Windows&) {
    const device::proxy::Endpoint<> device(endpoint.view());
    {
      auto bad = device.channel(0, 0);
      // The service refuses what the channel's own checks would have.
      bad.ring().slots[0] = {1 | 1u << 1 | 63u << 20, 0};
      endpoint.view().rings[0].state->reserved = 1;
    }
    auto good = device.channel(0, 1);
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(good.wait(Thread{}, good.put_value(Thread{}, {0, 8}, std::uint64_t{1})).ok());
    auto failed = device.channel(0, 0);
    EXPECT_EQ(failed.flush(Thread{}).status, device::Status::completion_error);
    EXPECT_NE(endpoint.fault_word(0), 0u);
    EXPECT_EQ(endpoint.fault_word(1), 0u);
    EXPECT_TRUE(endpoint.worker_alive(0));
  });
}

TEST(NicProxy, OptionsOutOfRangeAreRefusedOnEveryRank) {
  auto members = host::make_thread_bootstrap(2);
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const host::ProtectionDomain domain(host::Context::open());
      host::WindowOptions window;
      window.bytes = 4096;
      const host::Windows windows(*members[rank], domain, std::span(&window, 1));
      EndpointOptions options;
      if (rank == 1) options.slots = 100;
      try {
        Endpoint endpoint(*members[rank], windows, options);
      } catch (const host::Error& error) {
        EXPECT_EQ(error.kind(), host::ErrorKind::bad_argument) << error.what();
        ++refused;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace belfry::proxy
