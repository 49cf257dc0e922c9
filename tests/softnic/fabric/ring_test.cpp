#include "softnic/fabric/ring.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

struct Ends {
  OwnedFd fd;
  RingProducer producer;
  RingConsumer consumer;
  RingMapping raw;  ///< a third mapping, to write what no end of a ring writes

  static Ends make(std::uint32_t bytes) {
    auto fd = create_ring(bytes);
    EXPECT_TRUE(fd);
    EXPECT_EQ(check_ring_fd((*fd).get(), bytes), 0);
    auto in = RingMapping::map((*fd).get(), bytes, RingMapping::Side::producer);
    auto out = RingMapping::map((*fd).get(), bytes, RingMapping::Side::consumer);
    auto raw = RingMapping::map((*fd).get(), bytes, RingMapping::Side::producer);
    EXPECT_TRUE(in && out && raw);
    EXPECT_EQ(check_ring_control(*out), 0);
    return {std::move(*fd), RingProducer(std::move(*in)), RingConsumer(std::move(*out)), std::move(*raw)};
  }
};

PutOutcome put(RingProducer& producer, const TestFrame& frame) {
  FrameHeader header;
  header.bytes = static_cast<std::uint32_t>(frame.bytes.size());
  header.source_qpn = frame.sender;
  header.dlid = static_cast<std::uint16_t>(frame.number);
  const FramePart all{frame.bytes.data(), frame.bytes.size()};
  return producer.put(header, {&all, 1});
}

// Fault: a frame that wraps at the ring's end is torn or handed on in two pieces.
TEST(Ring, FramesOfEverySizeWrapWhole) {
  Ends ring = Ends::make(kRingBytesLeast);
  CheckingReceiver receiver;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    ASSERT_EQ(put(ring.producer, TestFrame(5, i, random_size(mix(i), kMaxFrameBytes))), PutOutcome::done);
    if (i % 2 == 1) {
      ASSERT_EQ(ring.consumer.deliver(receiver, 10), 2u);
    }
  }
  EXPECT_EQ(receiver.frames, 20000u);
  EXPECT_TRUE(receiver.clean());
}

// Fault: one frame too many overwrites the oldest, or a ring that was full stays so.
TEST(Ring, IsFullToTheLastRecordAndNoFurther) {
  Ends ring = Ends::make(kRingBytesLeast);
  CheckingReceiver receiver;
  std::uint64_t sent = 0;
  for (int lap = 0; lap < 10; ++lap) {
    std::uint64_t fit = 0;
    while (put(ring.producer, TestFrame(5, sent, 80)) == PutOutcome::done) ++sent, ++fit;
    EXPECT_EQ(fit, kRingBytesLeast / record_bytes(80));
    EXPECT_EQ(ring.consumer.deliver(receiver, 1u << 20), fit);
  }
  EXPECT_TRUE(receiver.clean());
}

// Fault: frames of no bytes at all, or of the most, that do not pass.
TEST(Ring, TakesTheSmallestAndTheLargestFrame) {
  Ends ring = Ends::make(kRingBytesLeast);
  struct Sizes : FrameReceiver {
    std::vector<std::uint32_t> seen;
    void receive(const FrameHeader& header, const std::byte*) override { seen.push_back(header.bytes); }
  } sizes;
  FrameHeader header;
  const FramePart nothing{nullptr, 0};
  ASSERT_EQ(ring.producer.put(header, {}), PutOutcome::done);
  ASSERT_EQ(ring.producer.put(header, {&nothing, 1}), PutOutcome::done);
  ASSERT_EQ(put(ring.producer, TestFrame(5, 0, kMaxFrameBytes)), PutOutcome::done);
  EXPECT_EQ(ring.consumer.deliver(sizes, 10), 3u);
  EXPECT_EQ(sizes.seen, (std::vector<std::uint32_t>{0, 0, kMaxFrameBytes}));
}

// Fault: a half-written frame of a producer that died is delivered: bytes are in the ring, the tail is not
// moved.
TEST(Ring, UnpublishedFrameIsNotDelivered) {
  Ends ring = Ends::make(kRingBytesLeast);
  CheckingReceiver receiver;
  ASSERT_EQ(put(ring.producer, TestFrame(5, 0, 100)), PutOutcome::done);
  FrameHeader half;
  half.bytes = 1000;
  std::memcpy(ring.raw.data() + record_bytes(100), &half, sizeof half);
  EXPECT_EQ(ring.consumer.deliver(receiver, 10), 1u);
  EXPECT_EQ(ring.consumer.deliver(receiver, 10), 0u);
  EXPECT_TRUE(ring.consumer.empty());
  EXPECT_FALSE(ring.consumer.broken());
}

// Fault: a tail that no producer writes sends the consumer outside the ring, or round it for ever.
TEST(Ring, ConsumerRefusesAnImpossibleTail) {
  for (const std::uint64_t tail : {std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{kRingBytesLeast} + 64,
                                   ~std::uint64_t{0}, ~std::uint64_t{63}}) {
    Ends ring = Ends::make(kRingBytesLeast);
    CheckingReceiver receiver;
    ring.raw.control().tail.store(tail);
    EXPECT_EQ(ring.consumer.deliver(receiver, 10), 0u) << tail;
    EXPECT_TRUE(ring.consumer.broken()) << tail;
    EXPECT_TRUE(ring.consumer.empty()) << tail;
  }
}

// Fault: a length that reaches past what is published, or past the largest frame, is believed.
TEST(Ring, ConsumerRefusesAnImpossibleLength) {
  for (const std::uint32_t bytes : {100u, 5000u, 0x7fffffffu, 0xffffffffu}) {
    Ends ring = Ends::make(kRingBytesLeast);
    CheckingReceiver receiver;
    ASSERT_EQ(put(ring.producer, TestFrame(5, 0, 40)), PutOutcome::done);
    FrameHeader header;
    header.bytes = bytes;
    std::memcpy(ring.raw.data() + record_bytes(40), &header, sizeof header);
    ring.raw.control().tail.store(record_bytes(40) + 64);  // one line, less than any of the lengths
    EXPECT_EQ(ring.consumer.deliver(receiver, 10), 1u) << bytes;
    EXPECT_TRUE(ring.consumer.broken()) << bytes;
    EXPECT_TRUE(receiver.clean());
  }
}

// Fault: a head that no consumer writes makes the producer overwrite frames, or wait for ever.
TEST(Ring, ProducerRefusesAnImpossibleHead) {
  Ends ring = Ends::make(kRingBytesLeast);
  std::uint64_t sent = 0;
  while (put(ring.producer, TestFrame(5, sent, 4000)) == PutOutcome::done) ++sent;
  ring.raw.control().head.store(std::uint64_t{1} << 40);
  EXPECT_EQ(put(ring.producer, TestFrame(5, sent, 4000)), PutOutcome::broken);
  ring.raw.control().head.store(~std::uint64_t{0});
  EXPECT_EQ(put(ring.producer, TestFrame(5, sent, 4000)), PutOutcome::broken);
}

// Fault: memory that can shrink under its reader (SIGBUS), or that is no ring, is mapped.
TEST(Ring, RefusesMemoryThatIsNoRing) {
  const OwnedFd loose(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto size = static_cast<off_t>(sysconf(_SC_PAGESIZE) + kRingBytesLeast);
  ASSERT_EQ(ftruncate(loose.get(), size), 0);
  EXPECT_EQ(check_ring_fd(loose.get(), kRingBytesLeast), EPROTO);  // not sealed
  ASSERT_EQ(fcntl(loose.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(check_ring_fd(loose.get(), kRingBytesLeast), 0);
  EXPECT_EQ(check_ring_fd(loose.get(), 2 * kRingBytesLeast), EPROTO);
  EXPECT_EQ(check_ring_fd(loose.get(), kRingBytesLeast + 4096), EPROTO);
  EXPECT_EQ(check_ring_fd(loose.get(), 0), EPROTO);
  const OwnedFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(check_ring_fd(null.get(), kRingBytesLeast), EPROTO);
  const auto mapping = RingMapping::map(loose.get(), kRingBytesLeast, RingMapping::Side::consumer);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(check_ring_control(*mapping), EPROTO);  // all zero
  EXPECT_EQ(create_ring(kRingBytesLeast / 2).error(), EINVAL);
  EXPECT_EQ(create_ring(3 * kRingBytesLeast).error(), EINVAL);
}

// Fault: memory orderings that let a thread see a frame's length before its bytes, or lose a signal.
TEST(Ring, TwoThreads) {
  Ends ring = Ends::make(kRingBytesLeast);
  constexpr std::uint64_t kFrames = 200000;
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kFrames;) {
      if (put(ring.producer, TestFrame(5, i, random_size(mix(i), 300))) == PutOutcome::done) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  CheckingReceiver receiver;
  while (receiver.frames < kFrames) {
    if (ring.consumer.deliver(receiver, 64) == 0) std::this_thread::yield();
  }
  producer.join();
  EXPECT_TRUE(receiver.clean());
  EXPECT_TRUE(ring.consumer.empty());
}

}  // namespace
}  // namespace belfry::softnic
