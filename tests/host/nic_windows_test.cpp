#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "belfry/host/symmetric_heap.hpp"
#include "belfry/host/windows.hpp"
#include "host/counting_memory.hpp"
#include "host/device_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// Fault: a window of one kind that peers know by another's address or key, or whose flags tell nothing.
TEST(NicWindows, EveryKindIsReachedAtItsOffset) {
  run_pes(3, [](Bootstrap& bootstrap) {
    const auto provider = std::make_shared<CountingMemory>();
    alignas(64) std::array<std::byte, 4096> mine{};
    DeviceEndpointOptions options = device_options(4096);
    options.windows.push_back({.bytes = mine.size(), .adopt = mine.data()});
    options.windows.push_back(
        {.bytes = 10000, .access = kAllAccess | Access::relaxed_ordering, .memory = provider});
    options.windows.push_back({.bytes = 8192, .allocation = {.alignment = 1 << 16}});
    const DeviceEndpoint endpoint = make_endpoint(bootstrap, options);
    const Windows& windows = endpoint.windows();
    const device::EndpointView& view = endpoint.view();
    ASSERT_EQ(windows.count(), 4u);
    ASSERT_EQ(view.window_count, 4u);
    ASSERT_EQ(view.sink.window, 4u) << "the sink's entry comes last, and is no caller's window";
    EXPECT_EQ(*provider->allocations, 1);
    EXPECT_FALSE(windows.memory(1).owns());
    EXPECT_GE(windows.alignment(3), 1u << 16);
    EXPECT_GE(windows.alignment(1), 64u);
    for (std::uint32_t w = 0; w < 4; ++w) {
      EXPECT_EQ(view.windows[w].bytes, options.windows[w].bytes);
      EXPECT_EQ(view.windows[w].flags, w == 2 ? device::kWindowRelaxedOrdering : 0u);
    }
    for (std::uint32_t peer = 0; peer < 3; ++peer) {
      if (peer == view.pe) continue;
      ViewPoster poster(view, peer);
      for (std::uint32_t w = 0; w < 4; ++w)
        poster.write({w, view.windows[w].bytes - 8 * (view.pe + 1)}, 100 * view.pe + w + 1);
      poster.ring();
      ASSERT_TRUE(poster.drain());
    }
    bootstrap.barrier(soon());
    for (std::uint32_t peer = 0; peer < 3; ++peer) {
      for (std::uint32_t w = 0; w < 4; ++w) {
        const device::Place at{w, view.windows[w].bytes - 8 * (peer + 1)};
        EXPECT_EQ(word(endpoint, at), peer == view.pe ? 0 : 100 * peer + w + 1);
      }
    }
    bootstrap.barrier(soon());
  });
}

// Fault: ranks that go on with windows of different sizes, or wait for one that has thrown.
TEST(NicWindows, DifferencesAreRefusedEverywhere) {
  run_pes(3, [](Bootstrap& bootstrap) {
    std::vector<WindowOptions> options{{.bytes = 4096}, {.bytes = 64}};
    if (bootstrap.rank() == 2) options[1].bytes = 128;
    const Error error = expect_error(ErrorKind::bad_argument, [&] {
      Windows(bootstrap, soft_domain(), options, std::chrono::seconds(20));
    });
    EXPECT_THAT(error.what(), AllOf(HasSubstr("size of window 1"), HasSubstr("rank 2 has 128 B")));
    bootstrap.barrier(soon());
    if (bootstrap.rank() == 2) options.pop_back();
    expect_error(ErrorKind::bad_argument,
                 [&] { Windows(bootstrap, soft_domain(), options, std::chrono::seconds(20)); });
    bootstrap.barrier(soon());
  });
}

// Fault: the ranks beside one that cannot register wait for their deadline, and do not learn why.
TEST(NicWindows, OneRanksFailureIsEverybodys) {
  run_pes(3, [](Bootstrap& bootstrap) {
    const std::vector<WindowOptions> options{{.bytes = bootstrap.rank() == 1 ? std::size_t{0} : 64}};
    const Deadline begin = Clock::now();
    const Error error =
        expect_error(ErrorKind::bad_argument, [&] { Windows(bootstrap, soft_domain(), options); });
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
    if (bootstrap.rank() != 1) {
      EXPECT_THAT(error.what(), HasSubstr("rank 1 could not make its windows"));
    }
    bootstrap.barrier(soon());
  });
}

// Fault: indices beyond the tables.
TEST(NicWindows, WhatDoesNotExistIsRefused) {
  run_pes(1, [](Bootstrap& bootstrap) {
    const std::vector<WindowOptions> options{{.bytes = 64}};
    const Windows windows(bootstrap, soft_domain(), options);
    EXPECT_THAT(windows.decisions(), Contains(HasSubstr("window 0: 64 B")));
    expect_error(ErrorKind::bad_argument, [&] { windows.memory(1); });
    expect_error(ErrorKind::bad_argument, [&] { windows.remote(0, 1); });
    expect_error(ErrorKind::bad_argument, [&] { SymmetricHeap(windows, 1); });
    expect_error(ErrorKind::bad_argument,
                 [&] { SymmetricHeap(windows, 0).allocate(8, std::size_t{1} << 40); });
  });
}

// Fault: a Place from the heap that is another object at the peer.
TEST(NicWindows, HeapPlacesMeanTheSameEverywhere) {
  run_pes(2, [](Bootstrap& bootstrap) {
    const DeviceEndpoint endpoint = make_endpoint(bootstrap, device_options());
    SymmetricHeap heap(endpoint.windows(), 0);
    const device::Place gone = heap.allocate(1000);
    const device::Place kept = heap.allocate(8, 4096);
    heap.free(gone);
    const device::Place again = heap.allocate(24);
    heap.check(bootstrap, soon());
    ViewPoster poster(endpoint.view(), 1 - endpoint.view().pe);
    poster.write(kept, 41);
    poster.write(again + 8, 42);
    poster.ring();
    ASSERT_TRUE(poster.drain());
    bootstrap.barrier(soon());
    EXPECT_EQ(word(endpoint, kept), 41u);
    EXPECT_EQ(word(endpoint, again + 8), 42u);
    bootstrap.barrier(soon());
  });
}

}  // namespace
}  // namespace belfry::host
