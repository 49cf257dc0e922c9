#include "belfry/port/memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

#include "belfry/port/byte_order.hpp"

namespace belfry::port {
namespace {

/// Counts the turns that a polling load gives to others.
class Yields final : public CpuLane {
 public:
  std::uint32_t count = 0;
  Yields() { current_lane() = this; }
  virtual ~Yields() { current_lane() = nullptr; }
  void yield() override { ++count; }
  void sync_warp(std::uint32_t) override {}
  std::uint32_t ballot(std::uint32_t, bool) override { return 0; }
  std::uint64_t shuffle(std::uint32_t, std::uint64_t, std::uint32_t) override { return 0; }
  bool sync_block(bool vote) override { return vote; }
};

// Fault: a polling load that does not yield, so that lane locks never make progress; or a plain one that
// does.
TEST(Poll, YieldsOnceALoad) {
  const std::uint32_t word = 9;
  Yields lane;
  EXPECT_EQ(poll<Scope::system>(&word), 9u);
  EXPECT_EQ(lane.count, 1u);
  EXPECT_EQ(load<Scope::system>(&word), 9u);
  EXPECT_EQ(load_acquire<Scope::system>(&word), 9u);
  EXPECT_EQ(lane.count, 1u);
}

template <class T>
void expect_round_trip(T first, T second) {
  struct {
    T before, at, after;
  } words{};
  std::memset(static_cast<void*>(&words), 0x5a, sizeof words);
  const auto untouched = words;
  const auto same = [](const T& a, const T& b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  store<Scope::gpu>(&words.at, first);
  EXPECT_TRUE(same(load<Scope::gpu>(&words.at), first));
  store_release<Scope::block>(&words.at, second);
  EXPECT_TRUE(same(load_acquire<Scope::block>(&words.at), second));
  EXPECT_TRUE(same(poll<Scope::system>(&words.at), second));
  EXPECT_TRUE(same(words.before, untouched.before));
  EXPECT_TRUE(same(words.after, untouched.after));
}

// Fault: an access of another width than its type's, which takes a neighbour along.
TEST(Accesses, HaveTheWidthOfTheirType) {
  enum class Opcode : std::uint8_t { a = 0x17, b = 0xf1 };
  expect_round_trip<std::uint8_t>(0x12, 0xfe);
  expect_round_trip<std::uint16_t>(0x1234, 0xfedc);
  expect_round_trip<std::uint32_t>(0x12345678, 0xfedcba98);
  expect_round_trip<std::uint64_t>(0x123456789abcdef0, 0xfedcba9876543210);
  expect_round_trip<Opcode>(Opcode::a, Opcode::b);
  expect_round_trip<Be32>(Be32(1), Be32(0xfffffffe));
}

// Fault: halves of a segment swapped, or stored beside it.
TEST(Vector16, StoresItsBytesInOrder) {
  struct Segment {
    std::array<std::uint8_t, 16> bytes;
  };
  Segment segment{};
  for (std::uint8_t i = 0; i < 16; ++i) segment.bytes[i] = static_cast<std::uint8_t>(0xa0 + i);
  const Vector16 vector = as_vector(segment);
  EXPECT_EQ(vector.low, 0xa7a6a5a4a3a2a1a0u);
  EXPECT_EQ(vector.high, 0xafaeadacabaaa9a8u);

  alignas(16) std::array<std::uint8_t, 48> queue{};
  queue.fill(0xee);
  store_segment(&queue[16], vector);
  for (std::size_t i = 0; i < 48; ++i) {
    EXPECT_EQ(queue[i], i / 16 == 1 ? 0xa0 + i - 16 : 0xee) << i;
  }
}

// Fault: a read-modify-write returns the value after.
TEST(ReadModifyWrites, ReturnTheValueBefore) {
  std::uint64_t word = 10;
  EXPECT_EQ(fetch_add<Scope::gpu>(&word, std::uint64_t{5}), 10u);
  EXPECT_EQ(fetch_max<Scope::gpu>(&word, std::uint64_t{7}), 15u);
  EXPECT_EQ(word, 15u);
  EXPECT_EQ(fetch_max<Scope::gpu>(&word, std::uint64_t{70}), 15u);
  EXPECT_EQ(exchange<Scope::gpu>(&word, std::uint64_t{1}), 70u);
  EXPECT_EQ(compare_exchange<Scope::gpu>(&word, std::uint64_t{2}, std::uint64_t{3}), 1u);
  EXPECT_EQ(word, 1u);
  EXPECT_EQ(compare_exchange<Scope::gpu>(&word, std::uint64_t{1}, std::uint64_t{3}), 1u);
  EXPECT_EQ(word, 3u);
}

// Fault: a doorbell that is seen before what it announces. Plain payload: TSan judges it as well.
TEST(Doorbell, ComesAfterWhatPrecedesIt) {
  static constexpr std::uint64_t kRings = 20000;
  std::array<std::uint64_t, 8> payload{};
  std::uint64_t doorbell = 0, answered = 0, wrong = 0;
  std::thread nic([&] {
    for (std::uint64_t ring = 1; ring <= kRings; ++ring) {
      while (load_acquire<Scope::system>(&doorbell) != ring) std::this_thread::yield();
      for (const std::uint64_t word : payload) wrong += word != ring;
      store_release<Scope::system>(&answered, ring);
    }
  });
  for (std::uint64_t ring = 1; ring <= kRings; ++ring) {
    payload.fill(ring);
    if (ring % 2 == 0) {
      store_doorbell(&doorbell, ring);
    } else {
      store_doorbell_release<Scope::gpu>(&doorbell, ring);
    }
    while (load_acquire<Scope::system>(&answered) != ring) std::this_thread::yield();
  }
  nic.join();
  EXPECT_EQ(wrong, 0u);
}

/// A page at two addresses, as a program and a NIC have a register's.
class TwicePage {
 public:
  TwicePage() : fd_(memfd_create("register", 0)) {
    EXPECT_EQ(ftruncate(fd_, kBytes), 0);
    for (std::uint64_t*& view : views_)
      view = static_cast<std::uint64_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  }
  ~TwicePage() {
    for (std::uint64_t* view : views_) munmap(view, kBytes);
    close(fd_);
  }
  std::uint64_t* program() const { return views_[0]; }
  std::uint64_t* nic() const { return views_[1]; }

 private:
  static constexpr std::size_t kBytes = 4096;
  int fd_;
  std::uint64_t* views_[2] = {};
};

// Fault: TSan takes a register for two places, and calls all that a doorbell announces a race.
TEST(Doorbell, IsOneAtTwoAddresses) {
  static constexpr std::uint64_t kQp = std::uint64_t{0x2a} << 56;
  const TwicePage page;
  std::uint64_t payload = 0, seen = 0;
  std::thread nic([&] {
    while (load_acquire<Scope::system>(page.nic()) != (kQp | 1)) std::this_thread::yield();
    host_memory::note_doorbell(kQp | 1);
    seen = payload;
  });
  payload = 42;
  store_doorbell(page.program(), kQp | 1);
  nic.join();
  EXPECT_EQ(seen, 42u);
}

// Fault: a fence that orders nothing for one who uses C++'s atomics, as a NIC does that reads a record (it
// shows on aarch64, and under TSan).
TEST(Fence, IsReleasedByTheStoreBehindIt) {
  std::uint64_t plain = 0, seen = 0;
  std::uint32_t record = 0;
  std::thread nic([&] {
    while (std::atomic_ref(record).load(std::memory_order_acquire) == 0) std::this_thread::yield();
    seen = plain;
  });
  plain = 42;
  fence<Scope::gpu>();
  store<Scope::system>(&record, 1u);
  nic.join();
  EXPECT_EQ(seen, 42u);
}

// Fault: a fence that orders nothing (it shows on aarch64, and under TSan).
TEST(Fence, OrdersPlainStoresBetweenRelaxedFlags) {
  std::uint64_t plain = 0, flag = 0, seen = 0;
  std::thread reader([&] {
    while (load<Scope::gpu>(&flag) == 0) std::this_thread::yield();
    fence<Scope::gpu>();
    seen = plain;
  });
  plain = 42;
  fence<Scope::gpu>();
  store<Scope::gpu>(&flag, std::uint64_t{1});
  reader.join();
  EXPECT_EQ(seen, 42u);
}

}  // namespace
}  // namespace belfry::port
