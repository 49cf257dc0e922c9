#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "softnic/fabric/processes.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

constexpr std::size_t kMost = 8;
using Blocks = std::array<std::uint32_t, kMost>;

/// Sends `frames` to each of the others while taking theirs. \return 0 or what went wrong
int exchange(SharedFabric& port, std::size_t self, std::size_t count, const Blocks& blocks,
             std::uint64_t frames) {
  std::array<std::uint64_t, kMost> sent{};
  CheckingReceiver receiver;
  const auto end = Clock::now() + 100s;
  std::uint64_t random = mix(self);
  std::uint64_t left = frames * (count - 1);
  while (left > 0 || receiver.frames < frames * (count - 1)) {
    if (Clock::now() > end) return 1;
    std::size_t progress = 0;
    for (std::size_t peer = 0; peer < count; ++peer) {
      if (peer == self || sent[peer] == frames) continue;
      random = mix(random);
      const TestFrame frame(qpn_of(blocks[self]), sent[peer], random_size(random, kMaxFrameBytes));
      const SendOutcome outcome =
          frame.send(port, qpn_of(blocks[peer], static_cast<std::uint32_t>(random % 4096)));
      if (outcome == SendOutcome::unreachable) return 2;
      if (outcome == SendOutcome::full) continue;
      ++sent[peer];
      --left;
      ++progress;
    }
    progress += port.poll(receiver, 32);
    if (progress == 0) port.wait(1ms);
  }
  return receiver.clean() && receiver.next_of.size() == count - 1 ? 0 : 3;
}

class AllToAll : public ::testing::TestWithParam<std::size_t> {};

// Fault: frames of several senders mixed up, damaged or lost; a deadlock of full rings.
TEST_P(AllToAll, EveryFrameArrivesOnceInOrder) {
  const std::size_t count = GetParam();
  const std::string fabric = unique_fabric();
  Pipe ready;
  std::vector<std::unique_ptr<Pipe>> start, leave;
  for (std::size_t i = 0; i < count; ++i) {
    start.push_back(std::make_unique<Pipe>());
    leave.push_back(std::make_unique<Pipe>());
  }
  Pipe done;
  std::vector<Child> children;
  for (std::size_t self = 0; self < count; ++self) {
    children.emplace_back([&, self] {
      SharedFabric port(options_of(fabric, kRingBytesLeast));
      ready.put(std::pair<std::size_t, std::uint32_t>(self, *port.claim_block()));
      const auto blocks = start[self]->get<Blocks>();
      const int code = exchange(port, self, count, blocks, 4000);
      done.put(code);
      leave[self]->get<int>();  // a port that went earlier would look dead to those who still send
      return code;
    });
  }
  Blocks blocks{};
  for (std::size_t i = 0; i < count; ++i) {
    const auto [self, block] = ready.get<std::pair<std::size_t, std::uint32_t>>();
    blocks.at(self) = block;
  }
  for (const auto& pipe : start) pipe->put(blocks);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(done.get<int>(), 0);
  for (const auto& pipe : leave) pipe->put(0);
  for (Child& child : children) EXPECT_EQ(child.join(20s), 0);
}

INSTANTIATE_TEST_SUITE_P(Processes, AllToAll, ::testing::Values(2, 3, 5, 8));

}  // namespace
}  // namespace belfry::softnic
