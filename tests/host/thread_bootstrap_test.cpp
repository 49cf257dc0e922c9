#include "belfry/host/thread_bootstrap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "host/bootstrap_support.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

// Guards against blobs that are mixed up between ranks or rounds, in particular by a fast rank that is a
// round ahead of a slow one.
TEST(ThreadBootstrap, ManyRoundsOfAllGather) {
  auto members = make_thread_bootstrap(4);
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member] { expect_rounds(*member, 200); });
  }
  for (auto& thread : threads) thread.join();
}

// Guards against a broadcast of the caller's own bytes instead of the root's.
TEST(ThreadBootstrap, BroadcastAndBarrier) {
  auto members = make_thread_bootstrap(3);
  std::atomic<int> before = 0;
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&] {
      const Blob mine = blob_of("from " + std::to_string(member->rank()));
      EXPECT_EQ(text_of(member->broadcast(mine, 2, soon())), "from 2");
      ++before;
      member->barrier(soon());
      EXPECT_EQ(before, 3);
    });
  }
  for (auto& thread : threads) thread.join();
}

// Guards against waiting for ever for a rank that has left.
TEST(ThreadBootstrap, RankThatLeavesIsAnErrorForTheOthers) {
  auto members = make_thread_bootstrap(2);
  std::thread leaver([member = std::move(members[1])]() mutable { member.reset(); });
  const Error error = expect_error(ErrorKind::not_reachable, [&] { members[0]->barrier(later()); });
  EXPECT_THAT(error.what(), HasSubstr("rank 1"));
  leaver.join();
  expect_error(ErrorKind::not_reachable, [&] { members[0]->barrier(later()); });
}

// Guards against a deadline that is ignored, and against a group that goes on out of step after one.
TEST(ThreadBootstrap, DeadlineBreaksTheGroup) {
  auto members = make_thread_bootstrap(3);
  const Error error = expect_error(
      ErrorKind::timed_out, [&] { members[0]->barrier(deadline_after(std::chrono::milliseconds(20))); });
  EXPECT_THAT(error.what(), HasSubstr("rank 1, 2"));
  expect_error(ErrorKind::timed_out, [&] { members[1]->barrier(later()); });
}

// Guards against groups, roots and blobs of impossible size.
TEST(ThreadBootstrap, RefusesNonsense) {
  expect_error(ErrorKind::bad_argument, [] { make_thread_bootstrap(0); });
  auto members = make_thread_bootstrap(1);
  expect_error(ErrorKind::bad_argument, [&] { members[0]->broadcast({}, 1, soon()); });
  const Blob huge(kMaxBlobBytes + 1);
  expect_error(ErrorKind::bad_argument, [&] { members[0]->all_gather(huge, soon()); });
  EXPECT_EQ(members[0]->all_gather(blob_of("x"), soon()).size(), 1u);
}

}  // namespace
}  // namespace belfry::host
