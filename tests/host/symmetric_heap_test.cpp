#include "belfry/host/symmetric_heap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <thread>

#include "belfry/host/thread_bootstrap.hpp"
#include "host/bootstrap_support.hpp"
#include "host/heap_history.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

HeapRange range_of(std::uint64_t bytes, std::uint64_t alignment = 4096) { return {3, 0, bytes, alignment}; }

// Fault: places that overlap, lie outside, miss their alignment, or differ between PEs that make the same
// calls.
TEST(SymmetricHeap, RandomCallsKeepTheBooksRight) {
  constexpr std::uint64_t kBytes = 1 << 16;
  SymmetricHeap heap({1, 48, kBytes, 4096});
  SymmetricHeap twin({1, 48, kBytes, 4096});
  std::mt19937_64 random(7);
  std::map<std::uint64_t, std::uint64_t> live;  // offset to bytes asked for
  int full = 0;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 3 != 0 || live.empty()) {
      const std::uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 20000 : 400);
      const std::uint64_t alignment = std::uint64_t{1} << random() % 13;
      std::uint64_t offset = 0;
      try {
        offset = heap.allocate(bytes, alignment).offset;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ENOMEM);
        expect_error(ErrorKind::system, [&] { twin.allocate(bytes, alignment); });
        ++full;
        continue;
      }
      ASSERT_EQ(twin.allocate(bytes, alignment).offset, offset);
      ASSERT_EQ(offset % alignment, 0u);
      ASSERT_GE(offset, 48u);
      ASSERT_LE(offset + bytes, 48 + kBytes);
      const auto next = live.lower_bound(offset);
      ASSERT_TRUE(next == live.end() || next->first >= offset + bytes);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= offset);
      live.emplace(offset, bytes);
    } else {
      auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      heap.free({1, victim->first});
      twin.free({1, victim->first});
      live.erase(victim);
    }
  }
  EXPECT_GT(full, 100) << "the heap never filled up, so exhaustion was not tried";
  EXPECT_EQ(heap.allocations(), live.size());
  for (const auto& [offset, bytes] : live) heap.free({1, offset});
  EXPECT_EQ(heap.free_bytes(), kBytes);
  EXPECT_EQ(heap.largest_free(), kBytes);
}

// Fault: neighbours freed in any order stay apart, and a later large allocation finds no room.
TEST(SymmetricHeap, FreedNeighboursCoalesceInAnyOrder) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    SymmetricHeap heap(range_of(4096));
    std::vector<device::Place> places;
    for (int i = 0; i < 4; ++i) places.push_back(heap.allocate(1024));
    EXPECT_EQ(heap.free_bytes(), 0u);
    for (const int i : order) heap.free(places[static_cast<std::size_t>(i)]);
    EXPECT_EQ(heap.largest_free(), 4096u);
    EXPECT_EQ(heap.allocate(4096).offset, 0u);
  } while (std::next_permutation(order.begin(), order.end()));
}

// Fault: "out of memory", which does not say whether more or other memory would help.
TEST(SymmetricHeap, ExhaustionSaysWhatIsFree) {
  SymmetricHeap heap(range_of(4096));
  const device::Place first = heap.allocate(1024);
  heap.allocate(1024);
  const device::Place third = heap.allocate(1024);
  Error error = expect_error(ErrorKind::system, [&] { heap.allocate(1025); });
  EXPECT_EQ(error.code(), ENOMEM);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("1025 B"), HasSubstr("1024 of 4096 B are free"),
                                  HasSubstr("make the window larger")));
  heap.free(first);
  heap.free(third);
  error = expect_error(ErrorKind::system, [&] { heap.allocate(3000); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("3072 of 4096 B"), HasSubstr("largest piece 2048 B"),
                                  HasSubstr("pieces too small")));
  expect_error(ErrorKind::system, [&] { heap.allocate(~std::uint64_t{0}); });
  EXPECT_EQ(heap.allocate(2048).offset, 2048u) << "a failed call changed something";
}

// Fault: an alignment that only holds relative to a window whose address has less.
TEST(SymmetricHeap, RefusesWhatItCannotKeep) {
  SymmetricHeap heap(range_of(4096, 256));
  expect_error(ErrorKind::bad_argument, [&] { heap.allocate(0); });
  expect_error(ErrorKind::bad_argument, [&] { heap.allocate(8, 0); });
  expect_error(ErrorKind::bad_argument, [&] { heap.allocate(8, 48); });
  EXPECT_THAT(expect_error(ErrorKind::bad_argument, [&] { heap.allocate(8, 512); }).what(), HasSubstr("256"));
  const device::Place place = heap.allocate(8, 256);
  expect_error(ErrorKind::bad_argument, [&] { heap.free({0, place.offset}); });
  expect_error(ErrorKind::bad_argument, [&] { heap.free({3, place.offset + 16}); });
  heap.free(place);
  expect_error(ErrorKind::bad_argument, [&] { heap.free(place); });
  expect_error(ErrorKind::bad_argument, [] { SymmetricHeap({0, 0, 4096, 48}); });
  expect_error(ErrorKind::bad_argument, [] { SymmetricHeap({0, ~std::uint64_t{0}, 4096, 64}); });
}

/// Runs a heap of 64 KiB on each of three ranks. \return what check() threw on each, empty if nothing
std::vector<std::string> check_on_three(
    const std::function<void(int rank, SymmetricHeap& heap, Bootstrap& bootstrap)>& calls) {
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (auto& member : make_thread_bootstrap(3)) {
    threads.emplace_back([&, member = std::move(member)] {
      SymmetricHeap heap(range_of(1 << 16));
      try {
        calls(member->rank(), heap, *member);
        heap.check(*member, soon());
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(member->rank())] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Fault: heaps that went apart are noticed only as data in the wrong place.
TEST(SymmetricHeap, CheckNamesTheRankAndTheCall) {
  const auto errors = check_on_three([](int rank, SymmetricHeap& heap, Bootstrap& bootstrap) {
    heap.allocate(64);
    heap.check(bootstrap, soon());
    const device::Place place = heap.allocate(128);
    if (rank == 1) {
      heap.allocate(100);
    } else {
      heap.free(place);
    }
    heap.allocate(32);
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("rank 1's symmetric heap has diverged at its call 2"),
                             HasSubstr("allocate 100 B aligned to 64, where rank 0 made free of offset 64")));
  }
}

// Fault: a rank that has only fallen behind is taken for one that agrees, or a range for a history.
TEST(SymmetricHeap, CheckSeesMissingCallsAndOtherRanges) {
  auto errors = check_on_three([](int rank, SymmetricHeap& heap, Bootstrap&) {
    heap.allocate(64);
    if (rank != 2) heap.allocate(16);
  });
  EXPECT_THAT(errors[0],
              AllOf(HasSubstr("rank 2"), HasSubstr("call 1 (counted from 0), which it did not make")));
  EXPECT_EQ(errors[0], errors[2]);
  errors = check_on_three([](int rank, SymmetricHeap& heap, Bootstrap&) {
    if (rank == 0) heap = SymmetricHeap(range_of(1 << 15));
  });
  EXPECT_THAT(errors[1], AllOf(HasSubstr("rank 0"), HasSubstr("another range")));
  errors = check_on_three([](int, SymmetricHeap& heap, Bootstrap& bootstrap) {
    heap.free(heap.allocate(64));
    heap.check(bootstrap, soon());
    expect_error(ErrorKind::system, [&] { heap.allocate(1 << 20); });
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

// Fault: a history too long to keep makes up a difference, or overflows the exchange.
TEST(SymmetricHeap, LongHistoriesStillCompare) {
  const auto errors = check_on_three([](int rank, SymmetricHeap& heap, Bootstrap&) {
    for (std::size_t i = 0; i < kMostCallsKept; ++i) heap.free(heap.allocate(64));
    if (rank == 1) heap.allocate(8);
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error, AllOf(HasSubstr("rank 1"), HasSubstr("no longer kept")));
}

}  // namespace
}  // namespace belfry::host
