// A peer that keeps to no rule: it may lose its channel, it may not harm the port.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "softnic/fabric/block_names.hpp"
#include "softnic/fabric/hello.hpp"
#include "softnic/fabric/ring_memory.hpp"
#include "softnic/fabric/shared_fabric.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

class Hostile : public ::testing::Test {
 protected:
  Hostile() : names_(fabric_), port_(options_of(fabric_)), block_(*port_.claim_block()) {}

  OwnedFd connect() const {
    auto socket = names_.connect(block_);
    EXPECT_TRUE(socket);
    return std::move(*socket);
  }

  /// Lets the port look at its sockets until it has looked at this one's message.
  void settle() {
    for (int i = 0; i < 4; ++i) port_.wait(0ns);
  }

  bool was_dropped(const OwnedFd& socket) {
    settle();
    char byte = 0;
    return recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EINTR);
  }

  /// Whether a decent peer still gets through: what every test ends with.
  void expect_port_works() {
    SharedFabric decent(options_of(fabric_));
    CheckingReceiver receiver;
    for (std::uint64_t i = 0; i < 100; ++i) {
      ASSERT_EQ(TestFrame(1, i, 200).send(decent, qpn_of(block_)), SendOutcome::sent);
    }
    EXPECT_TRUE(poll_until(port_, receiver, [&] { return receiver.frames == 100; }));
    EXPECT_TRUE(receiver.clean());
  }

  std::string fabric_ = unique_fabric();
  BlockNames names_;
  SharedFabric port_;
  std::uint32_t block_;
};

OwnedFd raw_memory(std::size_t bytes, int seals) {
  OwnedFd fd(memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

const std::size_t kRingFile = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + kRingBytesLeast;

// Fault: a hello that is no hello is taken for one.
TEST_F(Hostile, WrongHellos) {
  const auto ring = create_ring(kRingBytesLeast);
  Hello hello;
  hello.ring_bytes = kRingBytesLeast;
  std::vector<Hello> wrong(5, hello);
  wrong[0].magic = 0;
  wrong[1].version = kHelloVersion + 1;
  wrong[2].ring_bytes = 2 * kRingBytesLeast;
  wrong[3].ring_bytes = 0;
  wrong[4].ring_bytes = 0x80000000u;
  for (const Hello& each : wrong) {
    const OwnedFd socket = connect();
    ASSERT_EQ(send_hello(socket.get(), each, (*ring).get()), 0);
    EXPECT_TRUE(was_dropped(socket));
  }
  EXPECT_EQ(port_.counters().refused, wrong.size());
  EXPECT_EQ(port_.counters().accepts, 0u);
  expect_port_works();
}

// Fault: a message of another length read as a hello; a missing descriptor used.
TEST_F(Hostile, OddMessages) {
  const std::vector<char> junk(1000, 'x');
  const Hello hello;
  for (const std::size_t bytes : {std::size_t{1}, sizeof hello - 1, sizeof hello + 1, junk.size()}) {
    const OwnedFd socket = connect();
    ASSERT_EQ(send(socket.get(), junk.data(), bytes, 0), static_cast<ssize_t>(bytes));
    EXPECT_TRUE(was_dropped(socket)) << bytes;
  }
  const OwnedFd bare = connect();
  ASSERT_EQ(send(bare.get(), &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));  // no descriptor
  EXPECT_TRUE(was_dropped(bare));
  const OwnedFd empty = connect();
  ASSERT_EQ(send(empty.get(), "", 0, 0), 0);
  EXPECT_TRUE(was_dropped(empty));
  expect_port_works();
}

// Fault: memory that could shrink (SIGBUS for its reader), is too small, or is no memory is mapped.
TEST_F(Hostile, WrongMemory) {
  std::vector<OwnedFd> wrong;
  wrong.push_back(raw_memory(kRingFile, 0));
  wrong.push_back(raw_memory(kRingFile, F_SEAL_GROW));
  wrong.push_back(raw_memory(kRingFile - 1, F_SEAL_SHRINK));
  wrong.push_back(raw_memory(0, F_SEAL_SHRINK));
  wrong.push_back(raw_memory(kRingFile, F_SEAL_SHRINK));                 // a header of zeros
  wrong.push_back(raw_memory(kRingFile, F_SEAL_SHRINK | F_SEAL_WRITE));  // cannot be mapped for writing
  wrong.emplace_back(open("/dev/zero", O_RDWR | O_CLOEXEC));
  wrong.emplace_back(eventfd(0, EFD_CLOEXEC));
  Hello hello;
  hello.ring_bytes = kRingBytesLeast;
  for (const OwnedFd& fd : wrong) {
    const OwnedFd socket = connect();
    ASSERT_EQ(send_hello(socket.get(), hello, fd.get()), 0);
    EXPECT_TRUE(was_dropped(socket));
  }
  EXPECT_EQ(port_.counters().refused, wrong.size());
  expect_port_works();
}

// Fault: descriptors that a peer packs into its messages pile up in the port.
TEST_F(Hostile, ExtraDescriptorsAreNotKept) {
  settle();
  const std::size_t before = open_descriptors();
  {
    const OwnedFd socket = connect();
    const OwnedFd extra(eventfd(0, EFD_CLOEXEC));
    std::array<int, 16> many;
    many.fill(extra.get());
    Hello hello;
    hello.ring_bytes = kRingBytesLeast;
    iovec body{.iov_base = &hello, .iov_len = sizeof hello};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof many)> control{};
    msghdr message{};
    message.msg_iov = &body;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof many);
    std::memcpy(CMSG_DATA(part), many.data(), sizeof many);
    ASSERT_EQ(sendmsg(socket.get(), &message, 0), static_cast<ssize_t>(sizeof hello));
    EXPECT_TRUE(was_dropped(socket));  // the first is no ring
    // And again on a channel that is open, as if they were wake-ups.
    const OwnedFd open_socket = connect();
    const auto ring = create_ring(kRingBytesLeast);
    ASSERT_EQ(send_hello(open_socket.get(), hello, (*ring).get()), 0);
    settle();
    for (int i = 0; i < 10; ++i) sendmsg(open_socket.get(), &message, 0);
    EXPECT_FALSE(was_dropped(open_socket));
  }
  settle();
  EXPECT_EQ(open_descriptors(), before);
  expect_port_works();
}

// Fault: a silent peer, or one that floods the socket, holds the port up.
TEST_F(Hostile, SilenceAndFloods) {
  const OwnedFd silent = connect();
  const OwnedFd flood = connect();
  const auto ring = create_ring(kRingBytesLeast);
  Hello hello;
  hello.ring_bytes = kRingBytesLeast;
  ASSERT_EQ(send_hello(flood.get(), hello, (*ring).get()), 0);
  int sent = 0;
  while (send(flood.get(), "x", 1, MSG_DONTWAIT) == 1) ++sent;
  EXPECT_GT(sent, 0);
  EXPECT_FALSE(was_dropped(silent));
  EXPECT_FALSE(was_dropped(flood));
  expect_port_works();
}

// Fault: a ring that turns to nonsense after it was taken crashes or hangs its reader, or is read on.
TEST_F(Hostile, RingsThatTurnBad) {
  struct Case {
    std::uint64_t tail;
    std::uint32_t bytes;
  };
  const Case cases[] = {{64, 0xffffffffu},
                        {64, 17},
                        {64, kMaxFrameBytes},
                        {kRingBytesLeast, kMaxFrameBytes + 1},
                        {65, 16},
                        {1, 0},
                        {kRingBytesLeast + 64, 0},
                        {~std::uint64_t{0}, 0},
                        {std::uint64_t{1} << 63, 16}};
  for (const Case& each : cases) {
    const OwnedFd socket = connect();
    const auto ring = create_ring(kRingBytesLeast);
    const auto mapping = RingMapping::map((*ring).get(), kRingBytesLeast, RingMapping::Side::producer);
    Hello hello;
    hello.ring_bytes = kRingBytesLeast;
    ASSERT_EQ(send_hello(socket.get(), hello, (*ring).get()), 0);
    ASSERT_FALSE(was_dropped(socket));
    FrameHeader header;
    header.bytes = each.bytes;
    std::memcpy((*mapping).data(), &header, sizeof header);
    (*mapping).control().tail.store(each.tail);
    CheckingReceiver receiver;
    EXPECT_EQ(port_.poll(receiver, 100), 0u) << each.tail << " " << each.bytes;
    EXPECT_TRUE(was_dropped(socket)) << each.tail << " " << each.bytes;
  }
  EXPECT_EQ(port_.counters().corrupt, std::size(cases));
  expect_port_works();
}

// Fault: a ring of random bytes, with a plausible tail, does harm.
TEST_F(Hostile, RandomRings) {
  struct Reader : FrameReceiver {
    std::uint64_t sum = 0;
    void receive(const FrameHeader& header, const std::byte* data) override {
      for (std::uint32_t i = 0; i < header.bytes; ++i) sum += static_cast<std::uint64_t>(data[i]);
    }
  } reader;
  std::uint64_t random = 1;
  for (int round = 0; round < 200; ++round) {
    const OwnedFd socket = connect();
    const auto ring = create_ring(kRingBytesLeast);
    const auto mapping = RingMapping::map((*ring).get(), kRingBytesLeast, RingMapping::Side::producer);
    Hello hello;
    hello.ring_bytes = kRingBytesLeast;
    ASSERT_EQ(send_hello(socket.get(), hello, (*ring).get()), 0);
    settle();
    for (std::uint32_t at = 0; at < kRingBytesLeast; at += 4) {
      random = mix(random);
      const auto word =
          static_cast<std::uint32_t>(random % 8 ? random % 300 : random);  // often a likely length
      std::memcpy((*mapping).data() + at, &word, sizeof word);
    }
    (*mapping).control().tail.store(mix(random) % kRingBytesLeast & ~(kRecordAlign - 1));
    for (int i = 0; i < 10; ++i) port_.poll(reader, 100);
  }
  expect_port_works();
}

// Fault: a receiver that writes nonsense back crashes the sender, makes it wait for ever, or keeps it
// from reaching the block's next owner.
TEST_F(Hostile, ReceiverThatWritesNonsense) {
  std::uint32_t block = block_ == 100 ? 101 : 100;
  auto listener = names_.claim(block);
  ASSERT_TRUE(listener);
  std::uint64_t sent = 0;
  while (TestFrame(1, sent, 1000).send(port_, qpn_of(block)) == SendOutcome::sent) ++sent;
  EXPECT_GT(sent, 0u);
  const OwnedFd socket(accept4((*listener).get(), nullptr, nullptr, SOCK_CLOEXEC));
  Hello hello;
  OwnedFd ring;
  ASSERT_EQ(receive_hello(socket.get(), hello, ring), 0);
  const auto mapping = RingMapping::map(ring.get(), hello.ring_bytes, RingMapping::Side::consumer);
  ASSERT_TRUE(mapping);
  send(socket.get(), "what?", 5, 0);  // nothing is ever sent this way
  (*mapping).control().asleep.store(0xffffffffu);
  (*mapping).control().head.store(std::uint64_t{1} << 50);
  EXPECT_EQ(TestFrame(1, sent, 1000).send(port_, qpn_of(block)), SendOutcome::unreachable);
  EXPECT_EQ(port_.counters().corrupt, 1u);
  expect_port_works();
}

// Fault: an owner of a block that never accepts makes send() block, or its frames count as sent for ever.
TEST_F(Hostile, ReceiverThatNeverAccepts) {
  const std::uint32_t block = block_ == 100 ? 101 : 100;
  const auto listener = names_.claim(block);
  ASSERT_TRUE(listener);
  std::uint64_t sent = 0;
  SendOutcome outcome = SendOutcome::sent;
  for (; outcome == SendOutcome::sent && sent < 10000; ++sent) {
    outcome = TestFrame(1, sent, 1000).send(port_, qpn_of(block));
  }
  EXPECT_EQ(outcome, SendOutcome::full);
  expect_port_works();
}

}  // namespace
}  // namespace belfry::softnic
