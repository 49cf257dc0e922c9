// The big proof: very many puts from several threads through shared queues, each of them accounted for. The
// normal run is small; BELFRY_PROOF_PUTS sets another size (100000000 for the full one).

#include "conformance/kernels/proof.hpp"

#include <chrono>
#include <cstdlib>

#include "conformance/configurations.hpp"

namespace belfry::conformance {
namespace {

constexpr std::uint32_t kSlots = 512;  ///< puts of a thread's lap

std::uint64_t puts_asked_for() {
  const char* text = std::getenv("BELFRY_PROOF_PUTS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1'000'000;
}

template <class Configuration>
class Proofs : public Case<Configuration> {};
using ProofConfigurations =
    ::testing::Types<Gda<GpuHandoffCollapsed>, Gda<GpuHandoffRing>, Gda<GpuLockCollapsed>,
                     Assisted<GpuHandoffCollapsed>, Proxy<SharedTuned>>;
TYPED_TEST_SUITE(Proofs, ProofConfigurations, ConfigurationNames);

// Fault: one put in very many that is lost, done twice, or overtakes another.
TYPED_TEST(Proofs, NoPutIsLostDoubledOrOvertaken) {
  // Three warps on two queues.
  constexpr lanes::Grid kGrid{3, 16};
  constexpr std::uint64_t kWriters = kGrid.blocks * kGrid.threads;
  constexpr std::uint32_t kQueues = 2;
  const std::uint64_t laps = (puts_asked_for() + kWriters * kSlots - 1) / (kWriters * kSlots);
  WorldOptions options;
  options.endpoint.queues_a_peer = kQueues;
  options.endpoint.blocks = 256;
  auto world = this->make_world(options);
  ASSERT_TRUE(world.ok());

  Array<Report> writing(kWriters);
  Array<Report> reading(kWriters);
  Proof p;
  p.queues = kQueues;
  p.slots = kSlots;
  p.laps = laps;
  p.data = {kData, 0};
  p.signals = {kSignals, 0};
  p.answers = {kSignals, 4096};
  p.total = {kSignals, 8192};
  p.results = {kSignals, 12288};
  ProveWriting<typename TypeParam::Endpoint> write{world.view(0), p};
  write.proof.peer = 1;
  write.proof.reports = writing.data();
  ProveReading<typename TypeParam::Endpoint> read{world.view(1), p};
  read.proof.peer = 0;
  read.proof.reports = reading.data();
  const auto deadline = std::chrono::hours(4);
  const auto begin = std::chrono::steady_clock::now();
  run_together(
      {[&] { Runner::launch(kGrid, write, deadline); }, [&] { Runner::launch(kGrid, read, deadline); }});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  EXPECT_TRUE(all_good(writing));
  EXPECT_TRUE(all_good(reading));
  std::uint64_t put = 0, found = 0, put_sum = 0, found_sum = 0;
  for (std::uint64_t w = 0; w < kWriters; ++w) {
    put += writing[w].values[0];
    put_sum += writing[w].values[1];
    found += reading[w].values[0];
    found_sum += reading[w].values[1];
    EXPECT_EQ(world.word(1, p.of_writer(p.signals, w)), laps);
    EXPECT_EQ(world.word(0, p.of_writer(p.answers, w)), laps);
    // Nothing came late: the last lap's words still stand.
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
      const bool pairs = laps % 2 == 0;
      const bool old = pairs && slot >= kSlots / 2;
      const std::uint64_t number = pairs && !old ? 2 * slot + 1 : slot;
      ASSERT_EQ(world.word(1, p.slot(w, slot)), Proof::word_of(w, laps - (old ? 2 : 1), number));
    }
  }
  EXPECT_EQ(put, kWriters * laps * kSlots);
  EXPECT_EQ(found, put);
  EXPECT_EQ(found_sum, put_sum);
  EXPECT_EQ(world.word(1, p.total), kWriters * laps);
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    for (std::uint32_t q = 0; q < kQueues; ++q) EXPECT_EQ(world.posted(pe, 1 - pe, q).fault, 0u);
  }
  std::printf("%llu puts in %.1f s: %.2f M/s, all accounted for\n", static_cast<unsigned long long>(found),
              took.count(), static_cast<double>(found) / took.count() / 1e6);
}

}  // namespace
}  // namespace belfry::conformance
