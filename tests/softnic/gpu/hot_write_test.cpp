#include "softnic/cuda/hot_write.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace belfry::softnic {
namespace {

constexpr std::uint32_t kQpn = 0x1234;
constexpr std::uint64_t kAddress = 0x7000'0000'0010;
constexpr std::uint64_t kLength = 256;
constexpr std::uint32_t kRights = 7;

class HotWay : public testing::Test {
 protected:
  HotWay() {
    key_.address = kAddress;
    key_.length = kLength;
    key_.memory = memory_;
    key_.key = 0x4242;
    key_.pd = 3;
    key_.access = kRights;
    hot_.qpn_segments = Be32(kQpn << 8 | HotWrites::kSegments).raw();
    heat(hot_, key_, false);
  }

  BlockWords block() const {
    BlockWords words;
    std::memcpy(&words, &wqe_, sizeof words);
    return words;
  }

  /// Likely to be a hot WRITE, or nearly one.
  BlockWords random_block(std::minstd_rand& random) {
    const auto now_and_then = [&](auto usual, auto rare) {
      return random() % 8 == 0 ? static_cast<decltype(usual)>(rare) : usual;
    };
    wqe_.control = wire::make_control(
        now_and_then(wire::WqeOpcode::rdma_write, static_cast<wire::WqeOpcode>(random() % 256)), random(),
        now_and_then(kQpn, kQpn + 1), now_and_then(3u, static_cast<std::uint32_t>(random() % 64)),
        static_cast<std::uint8_t>(random()));
    wqe_.remote.address.set(now_and_then(kAddress + random() % kLength, kAddress - 32 + random() % 600));
    wqe_.remote.rkey.set(now_and_then(key_.key, static_cast<std::uint32_t>(random())));
    wqe_.count.set(now_and_then(wire::kInlineFlag | static_cast<std::uint32_t>(random() % 16),
                                static_cast<std::uint32_t>(random())));
    for (unsigned char& byte : wqe_.payload) byte = static_cast<unsigned char>(random());
    return block();
  }

  struct {
    wire::ControlSegment control;
    wire::RemoteAddressSegment remote{};
    Be32 count{0u};
    unsigned char payload[28] = {};
  } wqe_;
  static_assert(sizeof wqe_ == sizeof(BlockWords));
  unsigned char memory_[kLength] = {};
  MkeyEntry key_;
  HotWrites hot_;
};

// Fault: what goes the short way through the engine is something else to the decoder, or was never granted.
TEST_F(HotWay, MeansWhatTheDecoderAndTheKeySay) {
  std::minstd_rand random(11);
  unsigned taken = 0;
  for (int i = 0; i < 400'000; ++i) {
    const BlockWords words = random_block(random);
    HotWrite hot;
    if (!take_hot(hot_, words, hot)) continue;
    ++taken;
    SingleWqe single;
    ASSERT_TRUE(decode_single(words, kQpn, single));
    ASSERT_EQ(single.opcode, wire::WqeOpcode::rdma_write);
    ASSERT_TRUE(single.inlined);
    ASSERT_EQ(single.bytes, hot.bytes);
    ASSERT_EQ(single.signalled, hot.signalled);
    unsigned char* to = nullptr;
    ASSERT_EQ(check_entry(key_, single.remote_key, key_.pd, single.remote, single.bytes, kRights, &to),
              KeyFault::none);
    ASSERT_EQ(to, hot.to);
    unsigned char payload[12];
    std::memcpy(payload, &hot.payload, 8);
    std::memcpy(payload + 8, &hot.payload_rest, 4);
    ASSERT_EQ(std::memcmp(payload, wqe_.payload, hot.bytes), 0);
  }
  EXPECT_GT(taken, 50'000u);
}

// Fault: a queue that has written nothing yet takes a WQE of zeros, or of key 0, for a WRITE to address 0.
TEST_F(HotWay, NothingIsHotBeforeTheFirst) {
  HotWrites cold;
  cold.qpn_segments = hot_.qpn_segments;
  wqe_.control = wire::make_control(wire::WqeOpcode::rdma_write, 0, kQpn, 3, 0);
  wqe_.count.set(wire::kInlineFlag | 8);
  HotWrite hot;
  EXPECT_FALSE(take_hot(cold, block(), hot));
}

// Fault: memory shorter than the longest hot payload makes the last offset wrap.
TEST_F(HotWay, ShortMemoryStaysCold) {
  HotWrites cold;
  key_.length = HotWrites::kMostBytes - 1;
  heat(cold, key_, false);
  EXPECT_EQ(cold.memory, nullptr);
}

}  // namespace
}  // namespace belfry::softnic
