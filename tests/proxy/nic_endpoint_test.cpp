/// \file
/// mini-proxy over the software NIC, PEs as threads.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
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

void put_signal_read_and_add(EndpointOptions options) {
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

// Fault: anything between a kernel's put and the peer's memory, the signal included.
TEST(NicProxy, PutsSignalsReadsAndAtomicsBetweenTwoPes) { put_signal_read_and_add({}); }

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

/// In place of GDRCopy: the memory is this host's all the same.
class HonestMapper : public CpuMapper {
 public:
  std::shared_ptr<void> map(void* address, std::size_t bytes) override {
    bytes_mapped = bytes;
    return {std::shared_ptr<void>(), address};
  }
  std::size_t bytes_mapped = 0;
};
class RefusingMapper : public CpuMapper {
 public:
  std::shared_ptr<void> map(void*, std::size_t) override {
    throw host::Error(host::ErrorKind::unsupported, "this machine has no GDRCopy", "Install it");
  }
};

/// Memory that no NIC can register: there is none at its address.
class NoMemory : public host::QueueMemory {
 public:
  std::shared_ptr<void> allocate(std::size_t) override {
    return {std::shared_ptr<void>(), reinterpret_cast<void*>(0x7000'0000)};
  }
  void fill(void*, std::byte, std::size_t) override {}
  void write(void*, const void*, std::size_t) override {}
  std::uint64_t load(const void*) override { return 0; }
};

EndpointOptions with_counters(CounterPath path, std::shared_ptr<CpuMapper> mapper,
                              std::shared_ptr<host::QueueMemory> memory) {
  EndpointOptions options;
  options.counters = path;
  options.cpu_mapper = std::move(mapper);
  options.counter_memory.memory = std::move(memory);
  options.pin = false;
  return options;
}

// Fault: counts that go elsewhere than where device code looks, or come in front of what they count, whoever
// writes them.
TEST(NicProxyCounters, CarryEverythingOnEachPath) {
  put_signal_read_and_add(with_counters(CounterPath::nic, nullptr, nullptr));
  put_signal_read_and_add(with_counters(CounterPath::gdrcopy, std::make_shared<HonestMapper>(), nullptr));
  put_signal_read_and_add(with_counters(CounterPath::host, nullptr, nullptr));
}

// Fault: a path that is taken although another was better, or possible; one of which nobody hears why.
TEST(NicProxyCounters, TheChoiceIsTheBestThatWorksAndSaysWhy) {
  struct Row {
    CounterPath wanted;
    std::shared_ptr<CpuMapper> mapper;
    std::shared_ptr<host::QueueMemory> memory;
    CounterPath path;
    std::string decision;
  };
  const auto memory = host::host_queue_memory();
  const auto works = std::make_shared<HonestMapper>();
  const auto refuses = std::make_shared<RefusingMapper>();
  const auto none = std::make_shared<NoMemory>();
  const std::string host = "completion counters: in host memory, written by the workers";
  const std::string nic = "completion counters: in the counter memory, written by the NIC";
  const std::string gdr =
      "completion counters: in the counter memory, written by the workers through GDRCopy";
  constexpr auto kAutomatic = CounterPath::automatic;
  constexpr auto kGdrCopy = CounterPath::gdrcopy;
  constexpr auto kHost = CounterPath::host;
  constexpr auto kNic = CounterPath::nic;
  for (const Row& row :
       {Row{kAutomatic, works, nullptr, kHost, host + ", for no counter memory is named"},
        Row{kHost, works, memory, kHost, host + ", as requested"},
        Row{kAutomatic, works, memory, kGdrCopy, gdr},
        Row{kGdrCopy, works, memory, kGdrCopy, gdr + ", as requested"},
        Row{kAutomatic, refuses, memory, kNic, nic + ", for this machine has no GDRCopy"},
        Row{kNic, works, memory, kNic, nic + ", as requested"},
        Row{kAutomatic, refuses, none, kHost, host + ", for this machine has no GDRCopy, and "}}) {
    EndpointOptions options = with_counters(row.wanted, row.mapper, row.memory);
    options.self_queues = true;
    on_pes(1, options, [&](Endpoint& endpoint, const host::Windows&) {
      EXPECT_EQ(endpoint.counter_path(), row.path) << row.decision;
      const auto& lines = endpoint.decisions();
      EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.starts_with(row.decision);
      })) << row.decision;
      if (row.path == CounterPath::gdrcopy) {
        EXPECT_EQ(works->bytes_mapped, sizeof(device::proxy::WorkerWords));
      }
    });
  }
}

// Fault: a certain path that was asked for and is silently another; GDRCopy's absence without its name.
TEST(NicProxyCounters, WhatWasAskedForAndCannotBeHadIsAnError) {
  if (dlopen("libgdrapi.so.2", RTLD_NOW) != nullptr) GTEST_SKIP() << "this machine has GDRCopy";
  struct Row {
    CounterPath wanted;
    std::shared_ptr<CpuMapper> mapper;
    std::shared_ptr<host::QueueMemory> memory;
    std::string text;
  };
  for (const Row& row : {Row{CounterPath::gdrcopy, std::make_shared<RefusingMapper>(), nullptr, "no GDRCopy"},
                         Row{CounterPath::gdrcopy, nullptr, nullptr, "GDRCopy"},
                         Row{CounterPath::nic, nullptr, std::make_shared<NoMemory>(), "ibv_reg_mr"}}) {
    auto members = host::make_thread_bootstrap(1);
    const host::ProtectionDomain domain(host::Context::open());
    host::WindowOptions window;
    window.bytes = 4096;
    const host::Windows windows(*members[0], domain, std::span(&window, 1));
    try {
      Endpoint endpoint(*members[0], windows, with_counters(row.wanted, row.mapper, row.memory));
      ADD_FAILURE() << row.text;
    } catch (const host::Error& error) {
      EXPECT_NE(std::string(error.what()).find(row.text), std::string::npos) << error.what();
    }
  }
}

// Fault: a fault that the NIC does not write, or a heartbeat that it writes too seldom for whoever watches
// it.
TEST(NicProxyCounters, FaultsAndHeartbeatsComeThroughTheNicToo) {
  for (const CounterPath path : {CounterPath::nic, CounterPath::gdrcopy}) {
    EndpointOptions options = with_counters(path, std::make_shared<HonestMapper>(), nullptr);
    options.self_queues = true;
    options.stall = std::chrono::milliseconds(800);
    on_pes(1, options, [](Endpoint& endpoint, const host::Windows&) {
      const device::proxy::Endpoint<> device(endpoint.view());
      auto channel = device.channel(0, 0);
      // A descriptor that the worker never sees: its completion does not come, and the worker is not lost.
      endpoint.view().rings[0].state->reserved = 1;
      EXPECT_EQ(device.quiet(Thread{}, port::Timeout::milliseconds(2000)).status, device::Status::timed_out);
      endpoint.view().rings[0].state->reserved = 0;
      channel.ring().slots[0] = {1 | 1u << 1 | 63u << 20, 0};
      endpoint.view().rings[0].state->reserved = 1;
      const device::Outcome o = device.quiet(Thread{}, port::Timeout::seconds(20));
      EXPECT_EQ(o.status, device::Status::completion_error);
      EXPECT_EQ(o.fault.kind, device::Fault::Kind::root);
      EXPECT_EQ(o.fault.syndrome, wire::Syndrome::local_qp_operation);
      EXPECT_NE(endpoint.fault_word(0), 0u);
    });
  }
}

}  // namespace
}  // namespace belfry::proxy
