#pragma once
/// \file
/// Frames that can be checked, receivers that check them, names that no other test uses.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "softnic/fabric/fabric.hpp"
#include "softnic/fabric/random.hpp"
#include "softnic/fabric/shared_fabric.hpp"

namespace belfry::softnic::testing {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// A fabric name of this test program's own.
inline std::string unique_fabric() {
  static std::atomic<unsigned> count{0};
  return "test." + std::to_string(getpid()) + "." + std::to_string(count++);
}

inline SharedFabricOptions options_of(const std::string& fabric, std::uint32_t ring_bytes = 64u << 10) {
  SharedFabricOptions options;
  options.fabric = fabric;
  options.ring_bytes = ring_bytes;
  return options;
}

inline std::uint32_t qpn_of(std::uint32_t block, std::uint32_t low = 7) {
  return block << kQpnBlockBits | low;
}

/// A frame whose bytes all follow from who sends it and its number, so that any change shows.
/// Layout: sender (4 B), number (8 B), checksum of the rest (8 B), pseudo-random bytes.
struct TestFrame {
  static constexpr std::size_t kLeast = 20;
  std::uint32_t sender = 0;
  std::uint64_t number = 0;
  std::vector<std::byte> bytes;

  TestFrame() = default;
  TestFrame(std::uint32_t from, std::uint64_t count, std::size_t size)
      : sender(from), number(count), bytes(size) {
    std::uint64_t word = mix(number ^ std::uint64_t{from} << 32);
    for (std::size_t i = kLeast; i < size; ++i) {
      if (i % 8 == 0) word = mix(word);
      bytes[i] = static_cast<std::byte>(word >> (8 * (i % 8)));
    }
    const std::uint64_t sum = checksum(std::span(bytes).subspan(kLeast));
    std::memcpy(bytes.data(), &sender, 4);
    std::memcpy(bytes.data() + 4, &number, 8);
    std::memcpy(bytes.data() + 12, &sum, 8);
  }

  static std::uint64_t checksum(std::span<const std::byte> data) {
    std::uint64_t sum = data.size();
    for (const std::byte b : data) sum = (sum ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
    return sum;
  }

  /// \return whether the bytes are what a sender wrote
  static bool parse(std::span<const std::byte> data, std::uint32_t& sender, std::uint64_t& number) {
    if (data.size() < kLeast) return false;
    std::uint64_t sum = 0;
    std::memcpy(&sender, data.data(), 4);
    std::memcpy(&number, data.data() + 4, 8);
    std::memcpy(&sum, data.data() + 12, 8);
    return sum == checksum(data.subspan(kLeast));
  }

  /// Sends it in three parts that split at odd places.
  SendOutcome send(Fabric& fabric, std::uint32_t qpn) const {
    FrameHeader header;
    header.bytes = static_cast<std::uint32_t>(bytes.size());
    header.source_qpn = sender;
    header.dlid = static_cast<std::uint16_t>(number);
    const std::size_t a = bytes.size() / 3, b = bytes.size() - bytes.size() / 5;
    const std::array<FramePart, 3> parts{FramePart{bytes.data(), a}, FramePart{bytes.data() + a, b - a},
                                         FramePart{bytes.data() + b, bytes.size() - b}};
    return fabric.send(qpn, header, parts);
  }
};

/// A size from the least to the most that is mostly small but reaches both ends.
inline std::size_t random_size(std::uint64_t random, std::size_t most) {
  const std::size_t range = most - TestFrame::kLeast + 1;
  const std::size_t limit = random % 4 == 0 ? range : std::min<std::size_t>(range, 256);
  return TestFrame::kLeast + (random >> 8) % limit;
}

/// Checks every frame; frames of one sender must come in order and without a gap.
class CheckingReceiver : public FrameReceiver {
 public:
  void receive(const FrameHeader& header, const std::byte* data) override {
    ++frames;
    std::uint32_t sender = 0;
    std::uint64_t number = 0;
    if (!TestFrame::parse({data, header.bytes}, sender, number) || header.source_qpn != sender ||
        header.dlid != static_cast<std::uint16_t>(number)) {
      ++damaged;
      return;
    }
    std::uint64_t& next = next_of[sender];
    if (number != next) ++misplaced;
    next = number + 1;
    last_sender = sender;
    last_number = number;
  }

  bool clean() const { return damaged == 0 && misplaced == 0; }

  std::map<std::uint32_t, std::uint64_t> next_of;
  std::uint64_t frames = 0;
  std::uint64_t damaged = 0;
  std::uint64_t misplaced = 0;
  std::uint32_t last_sender = 0;
  std::uint64_t last_number = 0;
};

/// Keeps the numbers of intact frames as they come.
class CollectingReceiver : public FrameReceiver {
 public:
  void receive(const FrameHeader& header, const std::byte* data) override {
    std::uint32_t sender = 0;
    std::uint64_t number = 0;
    ASSERT_TRUE(TestFrame::parse({data, header.bytes}, sender, number));
    numbers.push_back(number);
  }
  std::vector<std::uint64_t> numbers;
};

/// Polls until `done` or the time is over. \return whether it was done
template <class Done>
bool poll_until(Fabric& fabric, FrameReceiver& receiver, Done done, std::chrono::nanoseconds limit = 20s) {
  const auto end = Clock::now() + limit;
  while (!done()) {
    if (fabric.poll(receiver, 64) == 0) {
      if (Clock::now() > end) return false;
      fabric.wait(1ms);
    }
  }
  return true;
}

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace belfry::softnic::testing
