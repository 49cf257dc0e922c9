// Event channels: one record a read, none lost, none twice, true counts.

#include "softnic/uverbs/event_channel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

namespace belfry::softnic {
namespace {

class EventChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = EventChannel::create(EventChannel::Purpose::completion, sizeof(std::uint64_t), reader);
    ASSERT_TRUE(made);
    channel = *made;
  }
  void TearDown() override { ::close(reader); }

  void post(const int& source, std::uint64_t value) { channel->post(&source, &value); }
  std::uint64_t read_one() {
    std::uint64_t value = 0;
    EXPECT_EQ(::read(reader, &value, sizeof value), static_cast<ssize_t>(sizeof value));
    return value;
  }
  bool readable() {
    pollfd p{reader, POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
  }

  int reader = -1;
  std::shared_ptr<EventChannel> channel;
  const int a = 0;
  const int b = 0;
};

// Guards against a poll that lies, records that run together, and O_NONBLOCK that does not work.
TEST_F(EventChannelTest, OneRecordARead) {
  EXPECT_FALSE(readable());
  ::fcntl(reader, F_SETFL, O_NONBLOCK);
  std::uint64_t buffer[4] = {};
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), -1);
  EXPECT_EQ(errno, EAGAIN);
  post(a, 1);
  post(a, 2);
  EXPECT_TRUE(readable());
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 8);
  EXPECT_EQ(buffer[0], 1u);
  EXPECT_EQ(read_one(), 2u);
  EXPECT_FALSE(readable());
}

// Guards against a NIC thread that blocks on a full channel, and against events lost, doubled or out
// of order behind it.
TEST_F(EventChannelTest, BacklogArrivesInOrder) {
  constexpr std::uint64_t kEvents = 5000;  // many times what the descriptor holds
  for (std::uint64_t i = 0; i < kEvents; ++i) post(a, i);
  for (std::uint64_t i = 0; i < kEvents; ++i) ASSERT_EQ(read_one(), i);
  EXPECT_FALSE(readable());
  EXPECT_EQ(channel->withdraw(&a), kEvents);
}

// Guards against a destroyed CQ whose count of events differs from what the application has seen: it
// would wait for ever in ibv_destroy_cq.
TEST_F(EventChannelTest, WithdrawCountsWhatWasRead) {
  for (std::uint64_t i = 0; i < 10; ++i) {
    post(a, 100 + i);
    post(b, 200 + i);
  }
  for (int i = 0; i < 7; ++i) read_one();  // four of a, three of b
  EXPECT_EQ(channel->withdraw(&a), 4u);
  for (std::uint64_t i = 3; i < 10; ++i) EXPECT_EQ(read_one(), 200 + i);
  EXPECT_FALSE(readable());
  EXPECT_EQ(channel->withdraw(&b), 10u);
  EXPECT_EQ(channel->withdraw(&b), 0u);
}

// Guards against events of a destroyed CQ that come out of the backlog later.
TEST_F(EventChannelTest, WithdrawReachesTheBacklog) {
  constexpr std::uint64_t kEvents = 2000;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    post(a, i);
    post(b, i);
  }
  EXPECT_EQ(channel->withdraw(&a), 0u);
  for (std::uint64_t i = 0; i < kEvents; ++i) ASSERT_EQ(read_one(), i);
  EXPECT_FALSE(readable());
}

// Guards against races between the NIC that posts, the application that reads and a CQ that goes.
TEST_F(EventChannelTest, ReadersAndWithdrawalsAgree) {
  constexpr std::uint64_t kRounds = 200;
  constexpr std::uint64_t kEvents = 20;
  std::uint64_t seen = 0;
  std::thread application([&] {
    for (std::uint64_t value = read_one(); value != 0; value = read_one()) ++seen;
  });
  std::uint64_t reported = 0;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    for (std::uint64_t e = 0; e < kEvents; ++e) post(a, 1);
    reported += channel->withdraw(&a);
  }
  post(b, 0);
  application.join();
  EXPECT_EQ(seen, reported);
}

// Guards against a descriptor's number being taken for the channel after it was closed and reused.
TEST_F(EventChannelTest, KnowsItsDescriptor) {
  EXPECT_TRUE(channel->is(reader));
  EXPECT_TRUE(channel->held_by_application());
  const int other = ::dup(reader);
  EXPECT_TRUE(channel->is(other));
  ::close(reader);
  EXPECT_FALSE(channel->is(reader));
  int reused = -1;
  auto second = EventChannel::create(EventChannel::Purpose::completion, 8, reused);
  EXPECT_FALSE(channel->is(reused));
  ::close(reused);
  EXPECT_FALSE(channel->held_by_application());
  EXPECT_FALSE(channel->is(-1));
  reader = other;
}

}  // namespace
}  // namespace belfry::softnic
