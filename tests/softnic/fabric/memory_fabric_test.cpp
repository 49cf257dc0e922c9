#include "softnic/fabric/memory_fabric.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

// Fault: blocks that two ports share, or block 0, or a block that stays taken after its port is gone.
TEST(MemoryFabric, BlocksAreExclusiveAndComeBack) {
  const auto hub = MemoryHub::create();
  auto a = hub->open_port();
  auto b = hub->open_port();
  EXPECT_EQ(*a->claim_block(), 1u);
  EXPECT_EQ(*b->claim_block(), 2u);
  EXPECT_EQ(*a->claim_block(), 3u);
  a.reset();
  EXPECT_EQ(*b->claim_block(), 1u);
  EXPECT_EQ(*b->claim_block(), 3u);
}

// Fault: a loop that never ends, or a wrong errno, once every block is taken.
TEST(MemoryFabric, SaysWhenAllBlocksAreTaken) {
  const auto port = MemoryHub::create()->open_port();
  for (std::uint32_t i = 1; i < kQpnBlocks; ++i) ASSERT_TRUE(port->claim_block());
  EXPECT_EQ(port->claim_block().error(), ENOSPC);
}

// Fault: lost, damaged or exchanged frames; frames to the port itself that go nowhere.
TEST(MemoryFabric, CarriesFramesInOrder) {
  const auto hub = MemoryHub::create();
  const auto a = hub->open_port();
  const auto b = hub->open_port();
  const auto block_a = *a->claim_block(), block_b = *b->claim_block();
  for (std::uint64_t i = 0; i < 300; ++i) {
    const TestFrame frame(qpn_of(block_a), i, random_size(mix(i), kMaxFrameBytes));
    ASSERT_EQ(frame.send(*a, qpn_of(block_b)), SendOutcome::sent);
    ASSERT_EQ(frame.send(*a, qpn_of(block_a)), SendOutcome::sent);
  }
  for (Fabric* port : {a.get(), b.get()}) {
    CheckingReceiver receiver;
    EXPECT_EQ(port->poll(receiver, 100), 100u);
    EXPECT_EQ(port->poll(receiver, 1000), 200u);
    EXPECT_EQ(port->poll(receiver, 1000), 0u);
    EXPECT_TRUE(receiver.clean());
  }
}

// Fault: a bound that is not kept, or a port that stays full after it has been polled.
TEST(MemoryFabric, IsFullAtItsBound) {
  const auto hub = MemoryHub::create(3);
  const auto port = hub->open_port();
  const auto block = *port->claim_block();
  const TestFrame frame(1, 0, 64);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(frame.send(*port, qpn_of(block)), SendOutcome::sent);
  EXPECT_EQ(frame.send(*port, qpn_of(block)), SendOutcome::full);
  CheckingReceiver receiver;
  EXPECT_EQ(port->poll(receiver, 1), 1u);
  EXPECT_EQ(frame.send(*port, qpn_of(block)), SendOutcome::sent);
  EXPECT_EQ(frame.send(*port, qpn_of(block)), SendOutcome::full);
}

// Fault: frames to nobody, or to a port that is gone, that are said to be sent.
TEST(MemoryFabric, NobodyIsUnreachable) {
  const auto hub = MemoryHub::create();
  const auto a = hub->open_port();
  auto b = hub->open_port();
  const auto block = *b->claim_block();
  const TestFrame frame(1, 0, 64);
  EXPECT_EQ(frame.send(*a, qpn_of(block + 1)), SendOutcome::unreachable);
  EXPECT_EQ(frame.send(*a, 1), SendOutcome::unreachable);
  EXPECT_EQ(frame.send(*a, qpn_of(block)), SendOutcome::sent);
  b.reset();
  EXPECT_EQ(frame.send(*a, qpn_of(block)), SendOutcome::unreachable);
}

// Fault: a header whose length is not the parts' sum read past the end of a buffer.
TEST(MemoryFabric, RefusesIllFormedFrames) {
  const auto port = MemoryHub::create()->open_port();
  const auto block = *port->claim_block();
  const std::vector<std::byte> data(kMaxFrameBytes + 1);
  FrameHeader header;
  header.bytes = 10;
  const FramePart nine{data.data(), 9};
  EXPECT_EQ(port->send(qpn_of(block), header, {&nine, 1}), SendOutcome::unreachable);
  header.bytes = kMaxFrameBytes + 1;
  const FramePart long_part{data.data(), data.size()};
  EXPECT_EQ(port->send(qpn_of(block), header, {&long_part, 1}), SendOutcome::unreachable);
}

// Fault: a wake() that comes before wait() is lost; a frame that does not end a wait.
TEST(MemoryFabric, WakesSleepers) {
  const auto hub = MemoryHub::create();
  const auto a = hub->open_port();
  const auto b = hub->open_port();
  const auto block = *a->claim_block();
  const auto start = Clock::now();
  a->wake();
  a->wait(60s);
  std::thread waker([&] { a->wake(); });
  a->wait(60s);
  waker.join();
  std::thread sender([&] { TestFrame(1, 0, 64).send(*b, qpn_of(block)); });
  CheckingReceiver receiver;
  while (a->poll(receiver, 1) == 0) a->wait(60s);
  sender.join();
  EXPECT_LT(Clock::now() - start, 50s);  // a lost wake-up costs a minute
}

}  // namespace
}  // namespace belfry::softnic
