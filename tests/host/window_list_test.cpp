#include "host/window_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "belfry/host/thread_bootstrap.hpp"
#include "host/bootstrap_support.hpp"
#include "host/collective.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<WindowEntry> two_windows(std::uint64_t address) {
  return {{{address, 4096, 0x101}, kAllAccess},
          {{address + 8192, 64, 0x202}, kAllAccess | Access::relaxed_ordering}};
}

// Fault: entries that are shifted or lose a field on the way to a peer.
TEST(WindowList, SurvivesTheWire) {
  const auto windows = two_windows(0x7f0000001000);
  const auto back = decode_windows(0, encode_windows(windows));
  ASSERT_EQ(back.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back[i].description, windows[i].description);
    EXPECT_EQ(back[i].access, windows[i].access);
  }
  EXPECT_TRUE(decode_windows(0, encode_windows({})).empty());
}

// Fault: another program's blob read as windows, beyond its end.
TEST(WindowList, RefusesOtherBlobs) {
  Blob blob = encode_windows(two_windows(0x1000));
  EXPECT_THAT(expect_error(ErrorKind::bad_argument, [&] { decode_windows(3, {}); }).what(),
              HasSubstr("rank 3"));
  Blob shorter(blob.begin(), blob.end() - 1);
  expect_error(ErrorKind::bad_argument, [&] { decode_windows(0, shorter); });
  Blob longer = blob;
  longer.resize(blob.size() + 28);
  expect_error(ErrorKind::bad_argument, [&] { decode_windows(0, longer); });
  blob[0] ^= std::byte{1};
  expect_error(ErrorKind::bad_argument, [&] { decode_windows(0, blob); });
}

// Fault: the one rank that differs is not named, or the many that do not are blamed.
TEST(WindowList, NamesTheRankThatDiffers) {
  std::vector<std::vector<WindowEntry>> lists(4, two_windows(0x1000));
  check_windows_agree(lists);
  lists[2][0].description.address = 0x5000;
  lists[2][0].description.rkey = 7;
  check_windows_agree(lists);  // these are each rank's own

  lists[0][1].description.length = 65;
  EXPECT_THAT(expect_error(ErrorKind::bad_argument, [&] { check_windows_agree(lists); }).what(),
              AllOf(HasSubstr("size of window 1"), HasSubstr("rank 0 has 65 B, rank 1 has 64 B")));
  lists[0][1].description.length = 64;
  lists[3][1].access = kAllAccess;
  EXPECT_THAT(expect_error(ErrorKind::bad_argument, [&] { check_windows_agree(lists); }).what(),
              AllOf(HasSubstr("access of window 1"), HasSubstr("rank 3 has"), HasSubstr("relaxed_ordering")));
  lists[1].pop_back();
  EXPECT_THAT(expect_error(ErrorKind::bad_argument, [&] { check_windows_agree(lists); }).what(),
              AllOf(HasSubstr("number of windows"), HasSubstr("rank 1 has 1, rank 0 has 2")));
}

// Fault: with as many ranks on either side, ranks disagree about who is odd.
TEST(OddRank, IsTheMinorityOrNotRankZero) {
  const auto odd = [](std::vector<int> values) {
    const auto rank = find_odd_rank(values);
    return rank ? static_cast<int>(rank->odd) : -1;
  };
  EXPECT_EQ(odd({5}), -1);
  EXPECT_EQ(odd({5, 5, 5}), -1);
  EXPECT_EQ(odd({5, 6}), 1);
  EXPECT_EQ(odd({6, 5, 5}), 0);
  EXPECT_EQ(odd({5, 6, 5, 6}), 1);
  EXPECT_EQ(odd({1, 2, 3, 3}), 0);
}

/// What exchange() threw on each of three ranks. \param fails runs on rank 1
std::vector<Error> exchange_on_three(const std::function<Blob()>& fails) {
  std::vector<Error> errors(3, Error(ErrorKind::system, "nothing was thrown", ""));
  std::vector<std::thread> threads;
  for (auto& member : make_thread_bootstrap(3)) {
    threads.emplace_back([&, member = std::move(member)] {
      const auto rank = static_cast<std::size_t>(member->rank());
      try {
        exchange(
            *member, "make its windows", [&] { return rank == 1 ? fails() : blob_of("ok"); }, soon());
      } catch (const Error& error) {
        errors[rank] = error;
      } catch (const std::exception& other) {
        errors[rank] = Error(ErrorKind::system, std::string("not an Error: ") + other.what(), "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Fault: ranks wait for their deadline because one of them failed on its own.
TEST(Exchange, TellsEveryRankWhoFailedAndWhy) {
  const auto errors = exchange_on_three(
      []() -> Blob { throw Error(ErrorKind::locked_memory, "the limit is 64 KiB", "Raise it", ENOMEM); });
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
    EXPECT_EQ(errors[rank].kind(), ErrorKind::locked_memory);
    EXPECT_THAT(
        errors[rank].what(),
        AllOf(HasSubstr("rank 1 could not make its windows: the limit is 64 KiB"), HasSubstr("Raise it")));
  }
  EXPECT_EQ(errors[1].kind(), ErrorKind::locked_memory);
  EXPECT_THAT(errors[1].what(), Not(HasSubstr("rank 1")));
}

// Fault: an exception of another type leaves its rank without a word to the others.
TEST(Exchange, OtherExceptionsCountToo) {
  const auto errors = exchange_on_three([]() -> Blob { throw std::bad_alloc(); });
  EXPECT_THAT(errors[0].what(), HasSubstr("rank 1 could not make its windows"));
  EXPECT_THAT(errors[1].what(), HasSubstr("not an Error: "));
}

// Fault: contributions that arrive with the exchange's own byte, or in another order.
TEST(Exchange, HandsOutWhatEachMade) {
  std::vector<std::thread> threads;
  for (auto& member : make_thread_bootstrap(3)) {
    threads.emplace_back([member = std::move(member)] {
      const auto all = exchange(
          *member, "test", [&] { return blob_of(contribution(member->rank(), 1)); }, soon());
      for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(text_of(all[static_cast<std::size_t>(rank)]), contribution(rank, 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace belfry::host
