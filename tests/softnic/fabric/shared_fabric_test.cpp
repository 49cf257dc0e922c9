#include "softnic/fabric/shared_fabric.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <optional>
#include <system_error>
#include <thread>

#include "softnic/fabric/processes.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

// Fault: two ports with one block; a fabric that meets another of a different name; block 0.
TEST(SharedFabric, BlocksAreExclusiveInOneFabric) {
  auto options = options_of(unique_fabric());
  options.seed = 5;
  SharedFabric a(options), b(options);
  const std::uint32_t first = *a.claim_block();
  const std::uint32_t second = *b.claim_block();
  EXPECT_NE(first, 0u);
  EXPECT_NE(first, second);
  options.fabric = unique_fabric();
  SharedFabric elsewhere(options);
  EXPECT_EQ(*elsewhere.claim_block(), first);  // the same seed, another fabric
}

// Fault: a block that stays taken after its port is gone.
TEST(SharedFabric, BlocksComeBack) {
  auto options = options_of(unique_fabric());
  options.seed = 6;
  std::optional<SharedFabric> port(options);
  const std::uint32_t block = *port->claim_block();
  port.emplace(options);
  EXPECT_EQ(*port->claim_block(), block);
}

// Fault: a probe that gives up early, never ends, or hands out block 0.
TEST(SharedFabric, HandsOutEveryBlockButTheFirst) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < kQpnBlocks + 100) GTEST_SKIP() << "needs 'ulimit -n' of " << kQpnBlocks + 100;
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  SharedFabric port(options_of(unique_fabric()));
  std::vector<bool> seen(kQpnBlocks);
  for (std::uint32_t i = 1; i < kQpnBlocks; ++i) {
    const auto block = port.claim_block();
    ASSERT_TRUE(block) << block.error();
    ASSERT_FALSE(seen.at(*block));
    seen[*block] = true;
  }
  EXPECT_FALSE(seen[0]);
  EXPECT_EQ(port.claim_block().error(), ENOSPC);
  setrlimit(RLIMIT_NOFILE, &before);
}

// Fault: frames lost, damaged or out of order, to another port and back, through many laps of a small ring.
TEST(SharedFabric, CarriesFramesBothWays) {
  const std::string fabric = unique_fabric();
  SharedFabric a(options_of(fabric, kRingBytesLeast)), b(options_of(fabric, kRingBytesLeast));
  const auto qpn_a = qpn_of(*a.claim_block()), qpn_b = qpn_of(*b.claim_block());
  CheckingReceiver at_a, at_b;
  std::uint64_t from_a = 0, from_b = 0;
  constexpr std::uint64_t kFrames = 20000;
  while (at_a.frames < kFrames || at_b.frames < kFrames) {
    while (from_a < kFrames &&
           TestFrame(qpn_a, from_a, random_size(mix(from_a), kMaxFrameBytes)).send(a, qpn_b) ==
               SendOutcome::sent) {
      ++from_a;
    }
    while (from_b < kFrames &&
           TestFrame(qpn_b, from_b, random_size(mix(~from_b), kMaxFrameBytes)).send(b, qpn_a) ==
               SendOutcome::sent) {
      ++from_b;
    }
    a.poll(at_a, 16);
    b.poll(at_b, 16);
  }
  EXPECT_TRUE(at_a.clean());
  EXPECT_TRUE(at_b.clean());
}

// Fault: a port that cannot reach its own QPNs; a receiver that cannot send while it receives.
TEST(SharedFabric, ReachesItself) {
  SharedFabric port(options_of(unique_fabric(), kRingBytesLeast));
  const auto qpn = qpn_of(*port.claim_block()), second = qpn_of(*port.claim_block());
  struct Echo : CheckingReceiver {
    SharedFabric* port = nullptr;
    std::uint32_t to = 0;
    std::uint64_t sent = 0;
    void receive(const FrameHeader& header, const std::byte* data) override {
      CheckingReceiver::receive(header, data);
      if (sent < 5000 && TestFrame(to, sent, 64).send(*port, to) == SendOutcome::sent) ++sent;
    }
  } echo;
  echo.port = &port;
  echo.to = second;
  ASSERT_EQ(TestFrame(second, echo.sent++, 64).send(port, qpn), SendOutcome::sent);
  ASSERT_TRUE(poll_until(port, echo, [&] { return echo.frames == 5000; }));
  EXPECT_TRUE(echo.clean());
  EXPECT_EQ(port.counters().connects, 0u);
}

// Fault: a budget that is not kept.
TEST(SharedFabric, KeepsToTheBudget) {
  const std::string fabric = unique_fabric();
  SharedFabric a(options_of(fabric)), b(options_of(fabric)), c(options_of(fabric));
  const auto qpn = qpn_of(*a.claim_block());
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(TestFrame(1, i, 64).send(b, qpn), SendOutcome::sent);
    ASSERT_EQ(TestFrame(2, i, 64).send(c, qpn), SendOutcome::sent);
    ASSERT_EQ(TestFrame(3, i, 64).send(a, qpn), SendOutcome::sent);
  }
  CheckingReceiver receiver;
  a.wait(0ns);  // takes the two peers in
  EXPECT_EQ(a.poll(receiver, 0), 0u);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(a.poll(receiver, 3), 3u);
  EXPECT_EQ(a.poll(receiver, 3), 0u);
  EXPECT_TRUE(receiver.clean());
}

// Fault: a peer that nobody polls and that never says full, or that stays full once it is polled.
TEST(SharedFabric, IsFullUntilThePeerPolls) {
  const std::string fabric = unique_fabric();
  SharedFabric a(options_of(fabric, kRingBytesLeast)), b(options_of(fabric, kRingBytesLeast));
  const auto qpn = qpn_of(*b.claim_block());
  std::uint64_t sent = 0;
  while (TestFrame(1, sent, 1000).send(a, qpn) == SendOutcome::sent) ++sent;
  EXPECT_EQ(sent, kRingBytesLeast / record_bytes(1000));
  EXPECT_EQ(TestFrame(1, sent, 1000).send(a, qpn), SendOutcome::full);
  CheckingReceiver receiver;
  ASSERT_TRUE(poll_until(b, receiver, [&] { return receiver.frames == sent; }));
  EXPECT_EQ(TestFrame(1, sent, 1000).send(a, qpn), SendOutcome::sent);
  EXPECT_TRUE(receiver.clean());
}

// Fault: frames to nobody said to be sent; a QPN outside 24 bits that reads past a table.
TEST(SharedFabric, NobodyIsUnreachable) {
  SharedFabric port(options_of(unique_fabric()));
  const TestFrame frame(1, 0, 64);
  for (const std::uint32_t qpn : {0u, 1u, 0xfffu, 0x1000u, 0xffffffu, 0x1000000u, 0xffffffffu}) {
    EXPECT_EQ(frame.send(port, qpn), SendOutcome::unreachable) << qpn;
  }
  EXPECT_EQ(port.counters().connects, 0u);
}

// Fault: a header whose length is not the parts' sum written into a ring.
TEST(SharedFabric, RefusesIllFormedFrames) {
  SharedFabric port(options_of(unique_fabric()));
  const auto qpn = qpn_of(*port.claim_block());
  const std::vector<std::byte> data(port.max_frame_bytes() + 1);
  FrameHeader header;
  header.bytes = 8;
  const FramePart parts[2] = {{data.data(), 4}, {data.data(), 5}};
  EXPECT_EQ(port.send(qpn, header, parts), SendOutcome::unreachable);
  header.bytes = 3;
  const FramePart wrapping[2] = {{data.data(), 4}, {data.data(), ~std::size_t{0}}};  // sums to 3
  EXPECT_EQ(port.send(qpn, header, wrapping), SendOutcome::unreachable);
  header.bytes = static_cast<std::uint32_t>(data.size());
  const FramePart whole{data.data(), data.size()};
  EXPECT_EQ(port.send(qpn, header, {&whole, 1}), SendOutcome::unreachable);
}

// Fault: frames of a port that has gone are lost though it had sent them; its channel stays; sends to
// it go on as if it lived; a new owner of the block is never found.
TEST(SharedFabric, APortThatGoesDeliversAndIsMissed) {
  const std::string fabric = unique_fabric();
  auto options = options_of(fabric);
  options.seed = 9;
  SharedFabric a(options_of(fabric));
  const auto qpn_a = qpn_of(*a.claim_block());
  std::optional<SharedFabric> b(options);
  const std::uint32_t block_b = *b->claim_block();
  CheckingReceiver receiver;

  ASSERT_EQ(TestFrame(1, 0, 64).send(a, qpn_of(block_b)), SendOutcome::sent);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(TestFrame(2, i, 64).send(*b, qpn_a), SendOutcome::sent);
  b.reset();  // before `a` has even accepted
  ASSERT_TRUE(poll_until(a, receiver, [&] { return receiver.frames == 10; }));
  a.wait(0ns);
  EXPECT_EQ(TestFrame(1, 1, 64).send(a, qpn_of(block_b)), SendOutcome::unreachable);

  b.emplace(options);
  ASSERT_EQ(*b->claim_block(), block_b);
  const auto end = Clock::now() + 20s;
  while (TestFrame(1, 0, 64).send(a, qpn_of(block_b)) != SendOutcome::sent) {
    ASSERT_LT(Clock::now(), end);
    a.wait(1ms);
  }
  CheckingReceiver at_b;
  EXPECT_TRUE(poll_until(*b, at_b, [&] { return at_b.frames == 1; }));
  EXPECT_TRUE(receiver.clean() && at_b.clean());
}

// Fault: descriptors that a come-and-go of peers leaves behind.
TEST(SharedFabric, PeersThatComeAndGoLeaveNoDescriptor) {
  const std::string fabric = unique_fabric();
  SharedFabric a(options_of(fabric));
  const auto qpn = qpn_of(*a.claim_block());
  CheckingReceiver receiver;
  const std::size_t before = open_descriptors();
  for (std::uint32_t i = 0; i < 50; ++i) {
    SharedFabric b(options_of(fabric));
    ASSERT_EQ(TestFrame(i, 0, 64).send(b, qpn), SendOutcome::sent);
    ASSERT_TRUE(poll_until(a, receiver, [&] { return receiver.frames == i + 1; }));
  }
  const auto end = Clock::now() + 20s;
  while (open_descriptors() != before && Clock::now() < end) a.wait(1ms);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_TRUE(receiver.clean());
}

// Fault: a port with no descriptor left spins on a peer that it cannot accept, or never recovers.
TEST(SharedFabric, SurvivesHavingNoDescriptorLeft) {
  Child child([] {
    const std::string fabric = unique_fabric();
    SharedFabric a(options_of(fabric)), b(options_of(fabric));
    const auto qpn = qpn_of(*a.claim_block());
    if (TestFrame(1, 0, 64).send(b, qpn) != SendOutcome::sent) return 1;
    const rlimit none{.rlim_cur = open_descriptors() - 1, .rlim_max = 1024};  // the listing's own is counted
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 2;
    CheckingReceiver receiver;
    a.wait(1s);
    if (a.poll(receiver, 10) != 0 || a.counters().refused != 1) return 3;
    const auto start = Clock::now();
    a.wait(50ms);  // nothing is left that could end it early
    if (Clock::now() - start < 40ms) return 4;
    const rlimit enough{.rlim_cur = 1024, .rlim_max = 1024};
    if (setrlimit(RLIMIT_NOFILE, &enough) != 0) return 5;
    b.wait(1s);  // learns that it was turned away
    const auto end = Clock::now() + 10s;
    while (TestFrame(1, 0, 64).send(b, qpn) != SendOutcome::sent) {
      if (Clock::now() > end) return 6;
      b.wait(1ms);
    }
    return poll_until(a, receiver, [&] { return receiver.frames == 1; }) && receiver.clean() ? 0 : 7;
  });
  EXPECT_EQ(child.join(60s), 0);
}

// Fault: a child of fork() that keeps its parent's block and hides the parent's end from the peers.
TEST(SharedFabric, AForkedChildKeepsNothing) {
  auto options = options_of(unique_fabric());
  options.seed = 3;
  Pipe out, go;
  std::optional<SharedFabric> port(options);
  const std::uint32_t block = *port->claim_block();
  Child child([&] {
    out.put(1);
    return go.get<int>();
  });
  out.get<int>();
  port.reset();
  port.emplace(options);
  EXPECT_EQ(*port->claim_block(), block);  // the child, alive, does not hold it
  go.put(0);
  EXPECT_EQ(child.join(20s), 0);
}

// Fault: an option out of range that crashes, or whose message does not help.
TEST(SharedFabric, RefusesBadOptionsWithARemedy) {
  for (const std::uint32_t bytes : {0u, 1u, 8192u, 65536u + 4096u, 128u << 20}) {
    try {
      SharedFabric port(options_of(unique_fabric(), bytes));
      ADD_FAILURE() << bytes;
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code().value(), EINVAL);
      EXPECT_NE(std::string(error.what()).find("power of two"), std::string::npos);
    }
  }
  EXPECT_NO_THROW(SharedFabric(options_of(std::string(kFabricNameMost, 'x'))));
  try {
    SharedFabric port(options_of(std::string(kFabricNameMost + 1, 'x')));
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENAMETOOLONG);
    EXPECT_NE(std::string(error.what()).find(std::to_string(kFabricNameMost)), std::string::npos);
  }
}

// Fault: the longest name that is allowed does not fit the address after all.
TEST(SharedFabric, TheLongestNameWorks) {
  std::string name = unique_fabric();
  name.resize(kFabricNameMost, 'x');
  SharedFabric a(options_of(name)), b(options_of(name));
  const auto qpn = qpn_of(*a.claim_block());
  ASSERT_EQ(TestFrame(1, 0, 64).send(b, qpn), SendOutcome::sent);
  CheckingReceiver receiver;
  EXPECT_TRUE(poll_until(a, receiver, [&] { return receiver.frames == 1; }));
}

// Fault: data races between two ports in two threads of one process (the thread sanitizer's test).
TEST(SharedFabric, TwoThreadsOfOneProcess) {
  const std::string fabric = unique_fabric();
  SharedFabric a(options_of(fabric, kRingBytesLeast)), b(options_of(fabric, kRingBytesLeast));
  const auto qpn_a = qpn_of(*a.claim_block()), qpn_b = qpn_of(*b.claim_block());
  constexpr std::uint64_t kFrames = 30000;
  const auto run = [](SharedFabric& port, std::uint32_t own, std::uint32_t other,
                      CheckingReceiver& receiver) {
    const auto end = Clock::now() + 60s;
    for (std::uint64_t sent = 0; (sent < kFrames || receiver.frames < kFrames) && Clock::now() < end;) {
      if (sent < kFrames) {
        sent += TestFrame(own, sent, random_size(mix(sent), 2000)).send(port, other) == SendOutcome::sent;
      }
      if (port.poll(receiver, 16) == 0) {
        if (sent == kFrames) {
          port.wait(10ms);
        } else {
          std::this_thread::yield();
        }
      }
    }
  };
  CheckingReceiver at_a, at_b;
  std::thread other([&] { run(b, qpn_b, qpn_a, at_b); });
  run(a, qpn_a, qpn_b, at_a);
  other.join();
  EXPECT_EQ(at_a.frames, kFrames);
  EXPECT_EQ(at_b.frames, kFrames);
  EXPECT_TRUE(at_a.clean() && at_b.clean());
}

}  // namespace
}  // namespace belfry::softnic
