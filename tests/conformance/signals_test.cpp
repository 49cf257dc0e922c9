// put_signal and those who wait: payload before signal, many rounds; every comparison; waits that end.

#include "conformance/kernels/signals.hpp"

#include <cstring>

#include "conformance/configurations.hpp"

namespace belfry::conformance {
namespace {

using device::Compare;
using device::SignalOperation;
using device::Status;

template <class Configuration>
class Signals : public Case<Configuration> {
 protected:
  using Endpoint = typename Configuration::Endpoint;
  using World = typename Configuration::World;

  /// Rounds of `words` words in one of the windows, one warp's thread at each end.
  void rounds(World& world, std::uint32_t window, std::uint32_t words, std::uint32_t count,
              SignalOperation operation) {
    world.set_word(1, {kSignals, 0}, 0);
    world.set_word(0, {kSignals, 128}, 0);
    Array<Report> reports(2);
    Rounds r;
    r.payload = {window, 4096};
    r.words = words;
    r.rounds = count;
    r.signal = {kSignals, 0};
    r.answer = {kSignals, 128};
    r.operation = operation;
    WriteRounds<Endpoint> write{world.view(0), r};
    write.rounds.peer = 1;
    write.rounds.reports = &reports[0];
    ReadRounds<Endpoint> read{world.view(1), r};
    read.rounds.peer = 0;
    read.rounds.reports = &reports[1];
    run_together({[&] { Runner::launch({1, 1}, write); }, [&] { Runner::launch({1, 1}, read); }});
    EXPECT_TRUE(all_good(reports));
    EXPECT_EQ(world.word(1, {kSignals, 0}), count);
    EXPECT_EQ(world.word(0, {kSignals, 128}), count);
  }
};
TYPED_TEST_SUITE(Signals, PublishingConfigurations, ConfigurationNames);

// Fault (field case 19): a signal that is seen before the whole payload, of one piece, of several, or in a
// window whose writes may be reordered.
TYPED_TEST(Signals, FieldCase19WhoeverSeesTheSignalSeesThePayload) {
  WorldOptions options;
  options.endpoint.max_message = 2048;
  auto world = this->make_world(options);
  ASSERT_TRUE(world.ok());
  this->rounds(world, kData, 16, 1500, SignalOperation::add);
  this->rounds(world, kRelaxed, 16, 1500, SignalOperation::add);
  this->rounds(world, kRelaxed, 1000, 500, SignalOperation::set);  // four pieces
  this->rounds(world, kData, 256, 500, SignalOperation::set);      // exactly one
}

// Fault (field case 12): a message of more than the device's limit that loses its tail, or whose signal
// overtakes one of its pieces: four of the greatest length and a short one.
TYPED_TEST(Signals, FieldCase12TheSignalComesAfterTheLastPiece) {
  WorldOptions options;
  options.endpoint.max_message = 1024;
  auto world = this->make_world(options);
  ASSERT_TRUE(world.ok());
  this->rounds(world, kData, 4 * 1024 / 8 + 1, 200, SignalOperation::add);
}

/// Waits that need no NIC: the word is set by the host.
class WaitForSignal : public ::testing::Test {
 protected:
  using Configuration = Gda<GpuHandoffCollapsed>;

  template <class Group>
  static Report wait(World& world, lanes::Grid grid, Compare how, std::uint64_t value,
                     port::Timeout timeout) {
    Array<Report> reports(grid.threads);
    WaitSignal<Configuration::Endpoint, Group> kernel;
    kernel.view = world.view(1);
    kernel.word = {kSignals, 0};
    kernel.how = how;
    kernel.value = value;
    kernel.timeout = timeout;
    kernel.reports = reports.data();
    Runner::launch(grid, kernel);
    for (const Report& r : reports) EXPECT_EQ(r.values[0], reports[0].values[0]);
    return reports[0];
  }
};

// Fault: a comparison taken for another, or of signed numbers; a wait that ends without what it waits for.
TEST_F(WaitForSignal, Compares) {
  World world(WorldOptions{}, Configuration::requirements());
  ASSERT_TRUE(world.ok());
  constexpr std::uint64_t kBelow = 1;
  constexpr std::uint64_t kValue = std::uint64_t{1} << 63;
  constexpr std::uint64_t kAbove = ~std::uint64_t{0};
  struct Row {
    Compare how;
    bool below, same, above;
  };
  for (const Row& row :
       {Row{Compare::equal, false, true, false}, Row{Compare::not_equal, true, false, true},
        Row{Compare::greater_equal, false, true, true}, Row{Compare::greater, false, false, true},
        Row{Compare::less_equal, true, true, false}, Row{Compare::less, true, false, false}}) {
    const auto expect = [&](std::uint64_t word, bool hits) {
      world.set_word(1, {kSignals, 0}, word);
      const auto timeout = hits ? kPatient : port::Timeout::milliseconds(2);
      const Report r = wait<device::Thread>(world, {1, 1}, row.how, kValue, timeout);
      EXPECT_EQ(r.values[0], static_cast<std::uint64_t>(hits ? Status::done : Status::timed_out))
          << static_cast<int>(row.how) << " " << word;
    };
    expect(kBelow, row.below);
    expect(kValue, row.same);
    expect(kAbove, row.above);
  }
}

// Fault: a form of the wait in which threads get different answers, or one that outlives its deadline.
TEST_F(WaitForSignal, EveryFormEndsInTime) {
  World world(WorldOptions{}, Configuration::requirements());
  ASSERT_TRUE(world.ok());
  const auto timeout = port::Timeout::milliseconds(20);
  const auto expect = [&](const Report& r) {
    EXPECT_EQ(r.values[0], static_cast<std::uint64_t>(Status::timed_out));
    EXPECT_GE(r.elapsed_ns, 20'000'000u);
    EXPECT_LT(r.elapsed_ns, 5'000'000'000u);
  };
  expect(wait<device::Thread>(world, {1, 1}, Compare::equal, 1, timeout));
  expect(wait<device::Warp>(world, {1, 32}, Compare::equal, 1, timeout));
  expect(wait<device::Block>(world, {1, 70}, Compare::equal, 1, timeout));
  world.set_word(1, {kSignals, 0}, 1);
  for (const Report& r : {wait<device::Warp>(world, {1, 32}, Compare::equal, 1, kPatient),
                          wait<device::Block>(world, {1, 70}, Compare::equal, 1, kPatient)})
    EXPECT_EQ(r.values[0], static_cast<std::uint64_t>(Status::done));
}

}  // namespace
}  // namespace belfry::conformance
