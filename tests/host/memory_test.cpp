#include "belfry/host/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "host/host_allocation.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

// Guards against a window whose fields are lost or mixed up on the way to the peer.
TEST(WindowDescription, SurvivesTheWire) {
  const WindowDescription w{0x0102030405060708, 0x1112131415161718, 0xa1a2a3a4};
  EXPECT_EQ(WindowDescription::decode(w.encode()), w);
  const WindowDescription::Encoded bytes = w.encode();
  expect_error(ErrorKind::bad_argument, [&] { WindowDescription::decode(std::span(bytes).first(23)); });
  expect_error(ErrorKind::bad_argument, [] { WindowDescription::decode(WindowDescription::Encoded{}); });
}

// Guards against a bounds check that overflows.
TEST(WindowDescription, ContainsDoesNotOverflow) {
  const WindowDescription w{0, 100, 0};
  EXPECT_TRUE(w.contains(0, 100));
  EXPECT_TRUE(w.contains(100, 0));
  EXPECT_FALSE(w.contains(1, 100));
  EXPECT_FALSE(w.contains(101, 0));
  EXPECT_FALSE(w.contains(50, std::numeric_limits<std::uint64_t>::max()));
}

// Guards against alignments that are not kept, and memory that is not zero.
TEST(HostAllocation, IsAlignedAndZero) {
  for (const std::size_t alignment :
       {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 16, std::size_t{1} << 21}) {
    const auto memory = allocate_host(10000, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % alignment, 0u);
    const auto* bytes = static_cast<const unsigned char*>(memory.get());
    EXPECT_TRUE(std::all_of(bytes, bytes + 10000, [](unsigned char b) { return b == 0; }));
  }
  EXPECT_NE(allocate_host(1, 4096, true).get(), nullptr);
}

// Guards against nonsense reaching mmap.
TEST(HostAllocation, RefusesNonsense) {
  expect_error(ErrorKind::bad_argument, [] { allocate_host(0, 4096); });
  expect_error(ErrorKind::bad_argument, [] { allocate_host(1, 0); });
  expect_error(ErrorKind::bad_argument, [] { allocate_host(1, 48); });
  expect_error(ErrorKind::system, [] { allocate_host(std::numeric_limits<std::size_t>::max(), 4096); });
  expect_error(ErrorKind::system, [] { allocate_host(std::numeric_limits<std::size_t>::max() / 4, 4096); });
}

}  // namespace
}  // namespace belfry::host
