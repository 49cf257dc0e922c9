#pragma once
/// \file
/// The cases of single operations, which several suites run: each under its own configurations, and so that
/// they compile at the same time.

#include <cstring>
#include <random>

#include "conformance/configurations.hpp"
#include "conformance/kernels/atomics.hpp"
#include "conformance/kernels/transfers.hpp"
#include "conformance/kernels/values.hpp"

namespace belfry::conformance {
inline constexpr Place kDone{kSignals, 8};
inline constexpr std::byte kGuard{0xee};
inline constexpr std::size_t kGuardBytes = 16;

/// Lengths around everything that changes with one: words, segments, inline limits, packets, messages.
inline std::vector<std::uint64_t> lengths(std::uint64_t max_message) {
  std::vector<std::uint64_t> all{0,   1,   3,   4,   7,   8,    9,    12,   13,   28,   29,   60,   64,
                                 188, 204, 220, 221, 256, 1023, 1024, 1025, 2048, 2049, 4095, 4096, 4097};
  for (const std::uint64_t pieces : {1u, 2u, 3u})
    for (const std::uint64_t off : {-1, 0, 1}) all.push_back(pieces * max_message + off);
  return all;
}

/// Transfers of all lengths, one after the other in both windows, at odd places, guards between them.
struct Layout {
  explicit Layout(const std::vector<std::uint64_t>& all, std::uint32_t window) {
    std::uint64_t at = kGuardBytes;
    std::uint64_t shift = 0;
    for (const std::uint64_t bytes : all) {
      transfers.push_back({{window, at + shift % 8}, {kData, at + (shift * 3) % 8}, bytes});
      at += bytes + 2 * kGuardBytes;
      ++shift;
    }
    end = at;
  }

  std::vector<Transfer> transfers;
  std::uint64_t end = 0;
};

inline void fill_random(std::byte* at, std::size_t bytes, unsigned seed) {
  std::minstd_rand random(seed + 1);
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(random() >> 8);
}

/// What a PE's window must hold after the transfers came into it from `source`.
inline std::vector<std::byte> expected(const Layout& layout, const std::byte* source, bool to_remote) {
  std::vector<std::byte> image(layout.end + kGuardBytes, kGuard);
  for (const Transfer& t : layout.transfers) {
    const std::uint64_t to = to_remote ? t.remote.offset : t.local.offset;
    const std::uint64_t from = to_remote ? t.local.offset : t.remote.offset;
    std::memcpy(image.data() + to, source + from, t.bytes);
  }
  return image;
}

inline ::testing::AssertionResult same(const std::byte* at, const std::vector<std::byte>& image) {
  for (std::size_t i = 0; i < image.size(); ++i) {
    if (at[i] != image[i])
      return ::testing::AssertionFailure()
             << "byte " << i << " of " << image.size() << " is " << static_cast<int>(at[i]) << ", not "
             << static_cast<int>(image[i]);
  }
  return ::testing::AssertionSuccess();
}

template <class Group>
lanes::Grid grid_of() {
  return std::is_same_v<Group, device::Thread> ? lanes::Grid{1, 1}
         : std::is_same_v<Group, device::Warp> ? lanes::Grid{1, 32}
                                               : lanes::Grid{1, 40};
}

template <class Configuration>
class OperationsCase : public Case<Configuration> {
 protected:
  using Endpoint = typename Configuration::Endpoint;
  using World = typename Configuration::World;
  static constexpr std::uint64_t kMaxMessage = 6000;

  static World make_world() {
    WorldOptions options;
    options.endpoint.max_message = kMaxMessage;
    return Case<Configuration>::make_world(options);
  }

  template <class Group>
  void put_all(World& world, std::uint32_t window, std::uint64_t round) {
    const Layout layout(lengths(kMaxMessage), window);
    fill_random(world.bytes(0, {kData, 0}), layout.end, static_cast<unsigned>(round));
    std::memset(world.bytes(1, {window, 0}), static_cast<int>(kGuard), layout.end + kGuardBytes);
    Array<Transfer> transfers(layout.transfers);
    const lanes::Grid grid = grid_of<Group>();
    Array<Report> reports(grid.threads);
    PutTransfers<Endpoint, Group> kernel;
    kernel.view = world.view(0);
    kernel.transfers = transfers.data();
    kernel.count = static_cast<std::uint32_t>(transfers.size());
    kernel.after = {kDone, round, device::SignalOperation::set};
    kernel.reports = reports.data();
    Runner::launch(grid, kernel);
    EXPECT_TRUE(all_good(reports));
    world.await(1, kDone, round);
    EXPECT_TRUE(same(world.bytes(1, {window, 0}), expected(layout, world.bytes(0, {kData, 0}), true)));
  }

  template <class Group>
  void get_all(World& world, unsigned seed) {
    const Layout layout(lengths(kMaxMessage), kRelaxed);
    fill_random(world.bytes(1, {kRelaxed, 0}), layout.end, seed);
    std::memset(world.bytes(0, {kData, 0}), static_cast<int>(kGuard), layout.end + kGuardBytes);
    Array<Transfer> transfers(layout.transfers);
    const lanes::Grid grid = grid_of<Group>();
    Array<Report> reports(grid.threads);
    GetTransfers<Endpoint, Group> kernel;
    kernel.view = world.view(0);
    kernel.transfers = transfers.data();
    kernel.count = static_cast<std::uint32_t>(transfers.size());
    kernel.reports = reports.data();
    Runner::launch(grid, kernel);
    EXPECT_TRUE(all_good(reports));
    EXPECT_TRUE(same(world.bytes(0, {kData, 0}), expected(layout, world.bytes(1, {kRelaxed, 0}), false)));
  }

  template <class Group>
  void atomics(World& world) {
    world.set_word(1, {kSignals, 64}, 0);
    const lanes::Grid grid = grid_of<Group>();
    Array<Report> reports(grid.threads);
    LonelyAtomics<Endpoint, Group> kernel;
    kernel.view = world.view(0);
    kernel.word = {kSignals, 64};
    kernel.result = {kData, 512};
    kernel.reports = reports.data();
    Runner::launch(grid, kernel);
    EXPECT_TRUE(all_good(reports));
  }

  void values() {
    auto world = make_world();
    ASSERT_TRUE(world.ok());
    std::memset(world.bytes(1, {kData, 0}), static_cast<int>(kGuard), kValueSlots * kValueSlotBytes);
    Array<Report> reports(40);
    PutValues<Endpoint> kernel;
    kernel.view = world.view(0);
    kernel.remote = {kData, 0};
    kernel.after = {kDone, 1, device::SignalOperation::add};
    kernel.reports = reports.data();
    Runner::launch({1, 40}, kernel);
    EXPECT_TRUE(all_good(reports));
    world.await(1, kDone, 1);
    expect_slot(world, kU8, kValueU8);
    expect_slot(world, kU16, kValueU16);
    expect_slot(world, kU32, kValueU32);
    expect_slot(world, kU64, kValueU64);
    expect_slot(world, kFloat, kValueFloat);
    expect_slot(world, kDouble, kValueDouble);
    expect_slot(world, kWarp, kValueU64);
    expect_slot(world, kBlock, kValueU64);
  }

 private:
  template <class T>
  static void expect_slot(const World& world, ValueSlot slot, T value) {
    std::vector<std::byte> image(kValueSlotBytes, kGuard);
    std::memcpy(image.data(), &value, sizeof value);
    EXPECT_TRUE(same(world.bytes(1, {kData, slot * kValueSlotBytes}), image)) << "slot " << slot;
  }
};

}  // namespace belfry::conformance
