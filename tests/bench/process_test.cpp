#include <gmock/gmock.h>
#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/peer_process.hpp"
#include "bench/process_usage.hpp"
#include "bench/wait.hpp"

namespace belfry::bench {
namespace {

// Fault: the measuring thread's own time is taken for the NIC's, or the NIC's is not seen.
TEST(ProcessUsage, CountsOtherThreadsOnly) {
  const auto burn = [](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  const std::uint64_t before = other_threads_cpu_ns();
  burn(std::chrono::milliseconds(30));
  EXPECT_EQ(other_threads_cpu_ns(), before) << "this thread is counted";
  std::atomic<bool> burnt{false};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    burn(std::chrono::milliseconds(30));
    burnt = true;
    while (!stop) std::this_thread::yield();
  });
  while (!burnt) std::this_thread::yield();
  EXPECT_GT(other_threads_cpu_ns(), before);
  stop = true;
  other.join();
}

// Fault: pages taken for bytes.
TEST(ProcessUsage, ResidentMemoryGrowsWithWhatIsTouched) {
  constexpr std::size_t kBytes = 32u << 20;
  const std::uint64_t before = resident_bytes();
  std::unique_ptr<volatile char[]> memory(new volatile char[kBytes]);
  for (std::size_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
  EXPECT_GE(resident_bytes(), before + kBytes / 2);
}

// Fault: a wait that never ends, or does not look before it waits.
TEST(Wait, EndsAtItsLimit) {
  PollPolicy policy;
  policy.limit = std::chrono::seconds(0);
  EXPECT_FALSE(wait_until([] { return false; }, policy));
  EXPECT_TRUE(wait_until([] { return true; }, policy));
  policy.yields = true;
  int polls = 0;
  EXPECT_TRUE(wait_until([&] { return ++polls == 100; }, policy));
  EXPECT_EQ(polls, 100);
}

// Fault: 200 Gb/s shown as another rate, or a rate made up from unknown codes.
TEST(DescribeNic, LinkText) {
  EXPECT_EQ(link_text(host::LinkLayer::infiniband, 64, 2), "InfiniBand 200 Gb/s");
  EXPECT_EQ(link_text(host::LinkLayer::ethernet, 128, 2), "Ethernet 400 Gb/s");
  EXPECT_EQ(link_text(host::LinkLayer::ethernet, 32, 1), "Ethernet 25 Gb/s");
  EXPECT_EQ(link_text(host::LinkLayer::infiniband, 3, 2), "InfiniBand");
  EXPECT_EQ(link_text(host::LinkLayer::infiniband, 64, 0), "InfiniBand");
}

// Fault: the two processes run different passes, arms or seeds, and wait for each other for ever.
TEST(PeerProcess, ArgumentsCarryEverySetting) {
  const Experiment* op = find_experiment("op");
  ASSERT_NE(op, nullptr);
  Options options;
  options.passes = 3;
  options.iterations = 70;
  options.nic = "soft";
  options.processes = 2;
  options.arms = {"verbs-pointer"};
  options.seed = 9;
  options.fabric = "f1";
  const RunContext run(*op, options, Progress(false));
  EXPECT_THAT(peer_arguments(run, "127.0.0.1:4"),
              testing::ElementsAre("belfry", "bench", "op", "--peer-of", "127.0.0.1:4", "--processes", "2",
                                   "--nic", "soft", "--passes", "3", "--iterations", "70", "--arms",
                                   "verbs-pointer", "--seed", "9", "--softnic-fabric", "f1"));
}

// Fault: no core is counted, so that every run believes it is short of them.
TEST(Cores, AtLeastOne) { EXPECT_GE(usable_cores(), 1u); }

}  // namespace
}  // namespace belfry::bench
