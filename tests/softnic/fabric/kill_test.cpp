#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "softnic/fabric/processes.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

/// Names of sockets of this fabric that the kernel still knows.
std::size_t sockets_named(const std::string& fabric) {
  std::ifstream table("/proc/net/unix");
  std::size_t count = 0;
  for (std::string line; std::getline(table, line);) count += line.find(fabric + "/") != std::string::npos;
  return count;
}

/// Files that belong to this fabric.
std::size_t files_named(const std::string& fabric) {
  std::size_t count = 0;
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      count += entry.path().filename().string().find(fabric) != std::string::npos;
    }
  }
  return count;
}

/// What the process that will be killed does, for ever: sends to the survivor and takes what comes.
[[noreturn]] void flood(const std::string& fabric, std::uint32_t incarnation, std::uint32_t to, Pipe& ready) {
  auto options = options_of(fabric, kRingBytesLeast);
  options.seed = 77;  // so that every incarnation takes the same block
  SharedFabric port(options);
  ready.put(*port.claim_block());
  CheckingReceiver receiver;
  for (std::uint64_t sent = 0;;) {
    const TestFrame frame(incarnation, sent, random_size(mix(sent), kMaxFrameBytes));
    sent += frame.send(port, to) == SendOutcome::sent;
    if (port.poll(receiver, 16) == 0 && sent % 64 == 0) port.wait(50us);
    if (!receiver.clean()) _exit(1);
  }
}

// Fault: a peer killed at any moment hangs the survivor, delivers half a frame, leaks descriptors,
// leaves its block taken or anything on the machine; a new process at the same block is never found.
TEST(Kill, TwoHundredRoundsOfKillAndRestart) {
  const std::string fabric = unique_fabric();
  std::uint64_t random = mix(2024), sent_all = 0, both_ways = 0;
  CheckingReceiver receiver;  // of all rounds: the last frames of the dead may come in the next one
  Pipe ready;
  std::optional<std::uint32_t> block;
  std::optional<SharedFabric> survivor;
  auto options = options_of(fabric, kRingBytesLeast);
  options.seed = 78;  // its blocks are not the peer's

  for (std::uint32_t round = 0; round < 200; ++round) {
    random = mix(random);
    // The survivor takes turns too: every so often it is the one that starts afresh.
    if (!survivor || random % 8 == 0) {
      survivor.reset();
      survivor.emplace(options);
    }
    const auto own = survivor->claim_block();
    ASSERT_TRUE(own);
    const std::size_t baseline = open_descriptors();

    Child peer([&]() -> int { flood(fabric, round, qpn_of(*own), ready); });
    const auto its = ready.get<std::uint32_t>();
    if (block) {
      ASSERT_EQ(its, *block) << "the killed process still holds its block";
    }
    block = its;

    std::uint64_t sent = 0;
    const std::uint64_t received_before = receiver.frames;
    const auto until = Clock::now() + std::chrono::microseconds(random / 8 % 8000);
    const auto step = [&] {
      const TestFrame frame(qpn_of(*own), sent, random_size(mix(sent), kMaxFrameBytes));
      const SendOutcome outcome = frame.send(*survivor, qpn_of(its));
      sent += outcome == SendOutcome::sent;
      survivor->poll(receiver, 8);
      return outcome;
    };
    while (Clock::now() < until) step();
    peer.kill_now();

    // From now on: what is in its ring still comes, then it is unreachable, in bounded time.
    const auto end = Clock::now() + 20s;
    while (step() != SendOutcome::unreachable) ASSERT_LT(Clock::now(), end) << round;
    while (open_descriptors() != baseline) {
      ASSERT_LT(Clock::now(), end) << "descriptors left open in round " << round;
      if (survivor->poll(receiver, 64) == 0) survivor->wait(1ms);
    }
    ASSERT_TRUE(receiver.clean()) << round << ": damaged " << receiver.damaged << " misplaced "
                                  << receiver.misplaced;
    sent_all += sent;
    both_ways += receiver.frames > received_before && sent > 0;
  }
  EXPECT_GT(receiver.frames, 1000u);  // else the rounds tested nothing
  EXPECT_GT(sent_all, 1000u);
  EXPECT_GT(both_ways, 50u);
  survivor.reset();
  EXPECT_EQ(sockets_named(fabric), 0u);
  EXPECT_EQ(files_named(fabric), 0u);
}

// Fault: a survivor that sleeps is not woken by its peer's death, or a sleeper by a newcomer.
TEST(Kill, ADeathAndABirthEndAWait) {
  const std::string fabric = unique_fabric();
  SharedFabric port(options_of(fabric));
  const auto qpn = qpn_of(*port.claim_block());
  Pipe go;
  Child peer([&] {
    SharedFabric other(options_of(fabric));
    go.get<int>();
    TestFrame(1, 0, 64).send(other, qpn);
    go.get<int>();
    return 0;
  });
  CheckingReceiver receiver;
  const auto start = Clock::now();
  go.put(0);
  while (receiver.frames == 0) {
    port.wait(60s);
    port.poll(receiver, 10);
  }
  peer.kill_now();
  while (port.counters().hangups == 0) port.wait(60s);
  EXPECT_LT(Clock::now() - start, 50s);
  EXPECT_TRUE(receiver.clean());
}

// Fault: the frames that a process had sent before it was killed die with it.
TEST(Kill, FinishedFramesOfTheDeadAreDelivered) {
  const std::string fabric = unique_fabric();
  SharedFabric port(options_of(fabric));
  const auto qpn = qpn_of(*port.claim_block());
  Pipe sent;
  Child peer([&] {
    SharedFabric other(options_of(fabric));
    std::uint64_t count = 0;
    while (TestFrame(1, count, 500).send(other, qpn) == SendOutcome::sent) ++count;
    sent.put(count);
    for (;;) pause();
    return 0;
  });
  const auto count = sent.get<std::uint64_t>();
  peer.kill_now();
  CheckingReceiver receiver;
  EXPECT_TRUE(poll_until(port, receiver, [&] { return receiver.frames == count; }));
  EXPECT_GT(count, 50u);
  EXPECT_TRUE(receiver.clean());
}

}  // namespace
}  // namespace belfry::softnic
