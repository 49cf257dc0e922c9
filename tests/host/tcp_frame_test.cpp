#include "host/tcp_frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "host/bootstrap_support.hpp"

namespace belfry::host {
namespace {

Blob frame_bytes(FrameKind kind, std::uint64_t sequence, std::string_view payload) {
  const FrameHeader header{Be32(kFrameMagic), Be16(kFrameVersion), Be16(static_cast<std::uint16_t>(kind)),
                           Be64(sequence), Be64(payload.size())};
  Blob bytes(sizeof header + payload.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, payload.data(), payload.size());
  return bytes;
}

// Guards against frames that are only understood when they arrive whole.
TEST(FrameDecoder, TakesAnyCut) {
  Blob stream = frame_bytes(FrameKind::contribution, 1, "first");
  const Blob second = frame_bytes(FrameKind::welcome, 2, "");
  const Blob third = frame_bytes(FrameKind::result, 3, std::string(300, 'r'));
  stream.insert(stream.end(), second.begin(), second.end());
  stream.insert(stream.end(), third.begin(), third.end());
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    FrameDecoder decoder;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      decoder.push(std::span(stream).subspan(at, std::min(step, stream.size() - at)));
      Frame frame;
      while (decoder.next(frame) == FrameDecoder::State::complete) frames.push_back(frame);
    }
    ASSERT_EQ(frames.size(), 3u) << "step " << step;
    EXPECT_EQ(frames[0].text(), "first");
    EXPECT_EQ(frames[1].kind, FrameKind::welcome);
    EXPECT_EQ(frames[2].sequence, 3u);
    EXPECT_EQ(frames[2].payload.size(), 300u);
  }
}

// Guards against a stranger (a port scanner, an HTTP client) being waited for or believed.
TEST(FrameDecoder, RefusesStrangersAtTheFirstBytes) {
  FrameDecoder decoder;
  Frame frame;
  EXPECT_EQ(decoder.next(frame), FrameDecoder::State::incomplete);
  decoder.push(blob_of("GE"));
  EXPECT_EQ(decoder.next(frame), FrameDecoder::State::garbage);
  decoder.push(frame_bytes(FrameKind::hello, 0, "12345678"));
  EXPECT_EQ(decoder.next(frame), FrameDecoder::State::garbage);
}

// Guards against a header that makes the receiver wait for, or allocate, what its kind cannot have.
TEST(FrameDecoder, RefusesImpossibleHeaders) {
  const auto state_of = [](FrameHeader header) {
    FrameDecoder decoder;
    decoder.push(std::as_bytes(std::span(&header, 1)));
    Frame frame;
    return decoder.next(frame);
  };
  const FrameHeader good{Be32(kFrameMagic), Be16(kFrameVersion), Be16(4), Be64(1), Be64(kMaxBlobBytes)};
  EXPECT_EQ(state_of(good), FrameDecoder::State::incomplete);
  FrameHeader bad = good;
  bad.bytes.set(kMaxBlobBytes + 1);
  EXPECT_EQ(state_of(bad), FrameDecoder::State::garbage);
  bad = good;
  bad.bytes.set(~std::uint64_t{0});
  EXPECT_EQ(state_of(bad), FrameDecoder::State::garbage);
  bad = good;
  bad.kind.set(77);
  EXPECT_EQ(state_of(bad), FrameDecoder::State::garbage);
  bad = good;
  bad.version.set(kFrameVersion + 1);
  EXPECT_EQ(state_of(bad), FrameDecoder::State::garbage);
  bad = good;
  bad.kind.set(static_cast<std::uint16_t>(FrameKind::hello));
  EXPECT_EQ(state_of(bad), FrameDecoder::State::garbage);
}

// Guards against crashes on random bytes behind a valid magic.
TEST(FrameDecoder, SurvivesRandomBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Blob bytes = frame_bytes(FrameKind::contribution, 1, "payload");
    for (int flips = 0; flips < 4; ++flips) bytes[random() % bytes.size()] = std::byte(random() & 0xff);
    FrameDecoder decoder;
    decoder.push(bytes);
    Frame frame;
    for (int i = 0; i < 3 && decoder.next(frame) == FrameDecoder::State::complete; ++i) {
      EXPECT_LE(frame.payload.size(), bytes.size());
    }
  }
}

}  // namespace
}  // namespace belfry::host
