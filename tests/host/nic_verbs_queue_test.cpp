#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "host/nic_support.hpp"

namespace belfry::host {
namespace {

using ::testing::HasSubstr;

class NicVerbsQueue : public ::testing::Test {
 protected:
  NicVerbsQueue() : pair_(endpoint_options(QueueKind::verbs)) {}
  void SetUp() override { ASSERT_TRUE(pair_.ok()); }

  VerbsQueue& queue() { return pair_.a().verbs_queue(1); }
  RemoteAddress remote(std::uint64_t offset) { return at(pair_.a().window(1), offset); }
  std::byte* local(std::size_t offset) { return pair_.a().memory().data() + offset; }
  std::byte* target(std::size_t offset) { return pair_.b().memory().data() + offset; }

  Completion expect_completion(PollStatus status = PollStatus::done) {
    const OnePoll one = poll_one(queue().send_cq(), soon());
    EXPECT_EQ(one.status, status) << describe(one.completion);
    return one.completion;
  }

  Pair pair_;
};

// Guards against payloads that are cut, shifted or taken from the wrong place.
TEST_F(NicVerbsQueue, WritesArriveWhole) {
  for (const std::uint32_t bytes : {1u, 8u, 1023u, 4096u, 20001u}) {
    fill_pattern(local(3), bytes, bytes);
    std::memset(target(0), 0, pair_.b().memory().bytes());
    ASSERT_EQ(post_write(queue(), slice(pair_.a().memory(), 3, bytes), remote(5), bytes), 0);
    EXPECT_EQ(expect_completion().wr_id, bytes);
    EXPECT_EQ(std::memcmp(target(5), local(3), bytes), 0) << bytes;
    EXPECT_EQ(target(4)[0], std::byte{0});
    EXPECT_EQ(target(5 + bytes)[0], std::byte{0});
  }
}

// Guards against inline payload being fetched later, when its source has been reused.
TEST_F(NicVerbsQueue, InlineSourceIsReusableAtOnce) {
  std::uint64_t value = 0x0123456789abcdef;
  ASSERT_EQ(post_write_inline(queue(), {&value, sizeof value, 0}, remote(64), 1), 0);
  value = 0;
  expect_completion();
  EXPECT_EQ(load_u64(target(64)), 0x0123456789abcdefu);
}

// Guards against reads and atomics that return the wrong value or change the wrong word.
TEST_F(NicVerbsQueue, ReadsAndAtomics) {
  fill_pattern(target(1000), 5000, 7);
  ASSERT_EQ(post_read(queue(), slice(pair_.a().memory(), 0, 5000), remote(1000), 1), 0);
  expect_completion();
  EXPECT_EQ(std::memcmp(local(0), target(1000), 5000), 0);

  store_u64(target(8), 40);
  ASSERT_EQ(post_fetch_add(queue(), slice(pair_.a().memory(), 0, 8), remote(8), 2, 2), 0);
  expect_completion();
  EXPECT_EQ(load_u64(local(0)), 40u);
  EXPECT_EQ(load_u64(target(8)), 42u);
  ASSERT_EQ(post_compare_swap(queue(), slice(pair_.a().memory(), 0, 8), remote(8), 41, 7, 3), 0);
  expect_completion();
  EXPECT_EQ(load_u64(local(0)), 42u);
  EXPECT_EQ(load_u64(target(8)), 42u);
  ASSERT_EQ(post_compare_swap(queue(), slice(pair_.a().memory(), 0, 8), remote(8), 42, 7, 4), 0);
  expect_completion();
  EXPECT_EQ(load_u64(target(8)), 7u);
}

// Guards against receives that lose their length, their immediate or their request id.
TEST_F(NicVerbsQueue, SendsAndImmediates) {
  VerbsQueue& receiver = pair_.b().verbs_queue(0);
  ASSERT_EQ(post_receive(receiver, slice(pair_.b().memory(), 0, 100), 11), 0);
  ASSERT_EQ(post_receive(receiver, slice(pair_.b().memory(), 100, 100), 12), 0);
  fill_pattern(local(0), 33, 1);
  ASSERT_EQ(post_send(queue(), slice(pair_.a().memory(), 0, 33), 1), 0);
  ASSERT_EQ(post_write_immediate(queue(), slice(pair_.a().memory(), 0, 8), remote(500), 0xcafef00d, 2), 0);
  expect_completion();
  expect_completion();
  std::array<Completion, 2> received;
  ASSERT_EQ(poll(receiver.receive_cq(), received, soon()).status, PollStatus::done);
  EXPECT_EQ(received[0].wr_id, 11u);
  EXPECT_EQ(received[0].byte_count, 33u);
  EXPECT_EQ(std::memcmp(target(0), local(0), 33), 0);
  EXPECT_EQ(received[1].wr_id, 12u);
  EXPECT_TRUE(received[1].has_immediate);
  EXPECT_EQ(received[1].immediate, 0xcafef00du);
}

// Guards against a protection violation that hangs, is not named, or lets later work through.
TEST_F(NicVerbsQueue, BadRkeyIsATypedError) {
  RemoteAddress bad = remote(0);
  bad.rkey ^= 0x5500;
  std::memset(target(0), 0, 64);
  ASSERT_EQ(post_write(queue(), slice(pair_.a().memory(), 0, 8), bad, 70), 0);
  ASSERT_EQ(post_write(queue(), slice(pair_.a().memory(), 0, 8), remote(0), 71), 0);
  const Completion first = expect_completion(PollStatus::failed);
  EXPECT_EQ(first.status, CompletionStatus::remote_access);
  EXPECT_EQ(first.wr_id, 70u);
  EXPECT_EQ(first.qpn, queue().qpn());
  EXPECT_NE(first.vendor_syndrome, 0u);
  EXPECT_THAT(completion_error(first).what(), HasSubstr("remote access error"));
  const Completion second = expect_completion(PollStatus::failed);
  EXPECT_EQ(second.status, CompletionStatus::flushed);
  EXPECT_EQ(second.wr_id, 71u);
}

// Guards against bounds that are not checked at either end.
TEST_F(NicVerbsQueue, OutOfBoundsAtThePeer) {
  ASSERT_EQ(post_write(queue(), slice(pair_.a().memory(), 0, 8), remote(pair_.b().memory().bytes() - 7), 1),
            0);
  EXPECT_EQ(expect_completion(PollStatus::failed).status, CompletionStatus::remote_access);
}

// Guards against a local key that is not looked at.
TEST_F(NicVerbsQueue, BadLkeyIsALocalError) {
  LocalSlice bad = slice(pair_.a().memory(), 0, 8);
  bad.lkey ^= 0x5500;
  ASSERT_EQ(post_write(queue(), bad, remote(0), 1), 0);
  EXPECT_EQ(expect_completion(PollStatus::failed).status, CompletionStatus::local_protection);
}

// Guards against waiting for ever when the peer's queue is down.
TEST_F(NicVerbsQueue, DeadPeerEndsInRetryExceeded) {
  pair_.b().queue(0).fail();
  ASSERT_EQ(post_write(queue(), slice(pair_.a().memory(), 0, 8), remote(0), 1), 0);
  const Completion c = expect_completion(PollStatus::failed);
  EXPECT_EQ(c.status, CompletionStatus::retry_exceeded);
}

// Guards against an overfull queue overwriting work, and against a poll without a deadline.
TEST_F(NicVerbsQueue, FullQueueIsRefusedAndPollsEnd) {
  EXPECT_EQ(poll_one(queue().send_cq(), deadline_after(std::chrono::milliseconds(5))).status,
            PollStatus::timed_out);
  int posted = 0;
  int code = 0;
  while (code == 0 && posted < 100000) {
    code =
        post_write(queue(), slice(pair_.a().memory(), 0, 8), remote(0), static_cast<std::uint64_t>(posted));
    posted += code == 0 ? 1 : 0;
  }
  EXPECT_EQ(code, ENOMEM);
  EXPECT_GE(posted, 256);
  std::vector<Completion> all(static_cast<std::size_t>(posted));
  const PollResult result = poll(queue().send_cq(), all, soon());
  EXPECT_EQ(result.status, PollStatus::done);
  for (int i = 0; i < posted; ++i)
    ASSERT_EQ(all[static_cast<std::size_t>(i)].wr_id, static_cast<std::uint64_t>(i));
  EXPECT_EQ(post_write(queue(), slice(pair_.a().memory(), 0, 8), remote(0), 1), 0);
  expect_completion();
}

// Guards against a second connect tearing a live connection down.
TEST_F(NicVerbsQueue, ConnectsOnce) {
  expect_error(ErrorKind::bad_argument,
               [&] { queue().connect(pair_.b().verbs_queue(0).local_address(), quick_retries()); });
}

// Guards against limits that only show as EINVAL from the driver.
TEST_F(NicVerbsQueue, LimitsAreNamed) {
  VerbsQueueOptions options;
  options.send_depth = 1u << 30;
  const Error error = expect_error(ErrorKind::bad_argument, [&] { VerbsQueue(pair_.a().domain(), options); });
  EXPECT_THAT(error.what(), HasSubstr(std::to_string(pair_.a().context().limits().max_qp_wr)));
  options.send_depth = 0;
  expect_error(ErrorKind::bad_argument, [&] { VerbsQueue(pair_.a().domain(), options); });
}

}  // namespace
}  // namespace belfry::host
