/// \file
/// A PE's own memory as an endpoint hands it to a kernel.

#include "device/fake_queue.hpp"

namespace belfry::device::test {
namespace {

// Fault: a pointer into memory that is not the window's, from an offset or count that does not fit or wraps.
TEST(GdaEndpoint, LocalMemoryIsTheWindowsOwn) {
  FakeQueue q;
  const gda::Endpoint<> endpoint(q.view);
  EXPECT_EQ(static_cast<void*>(endpoint.local<std::uint32_t>({0, 16})), q.memory.data() + 16);
  EXPECT_EQ(static_cast<void*>(endpoint.local<char>({1, 0}, FakeQueue::kWindowBytes)),
            q.memory.data() + FakeQueue::kWindowBytes);
  EXPECT_EQ(endpoint.local<char>({2, 0}), nullptr) << "no such window";
  EXPECT_EQ(endpoint.local<std::uint64_t>({0, FakeQueue::kWindowBytes - 7}), nullptr);
  EXPECT_EQ(endpoint.local<char>({0, FakeQueue::kWindowBytes + 1}, 0), nullptr);
  EXPECT_EQ(endpoint.local<std::uint64_t>({0, 0}, std::uint64_t{1} << 61), nullptr) << "2^64 B";
}

}  // namespace
}  // namespace belfry::device::test
