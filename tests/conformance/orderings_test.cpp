// What each operation does under every ordering, in both doorbell modes.

#include "conformance/operations.hpp"

namespace belfry::conformance {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kUnderTsan = true;
#else
constexpr bool kUnderTsan = false;
#endif

/// Whether nothing but the order in which x86 keeps stores puts a WQE before the record that announces it.
template <class Policy>
constexpr bool kRacesByCpp = Policy::doorbell_mode == DoorbellMode::record &&
                             (Policy::ordering == Ordering::none || Policy::ordering == Ordering::gpu_fence);

template <class Configuration>
class Orderings : public OperationsCase<Configuration> {
 protected:
  void SetUp() override {
    if (kUnderTsan && kRacesByCpp<typename Configuration::Policy>)
      GTEST_SKIP() << "TSan is right to call this ordering a race";
  }
};
TYPED_TEST_SUITE(Orderings, OrderingConfigurations, ConfigurationNames);

// Fault: a length, an address or a key of a piece that is wrong; a piece too many or too few at the edges of
// the device's limit; bytes written beyond the end; a message of no bytes taken for one of 2 GiB.
TYPED_TEST(Orderings, PutMovesEveryLength) {
  auto world = this->make_world();
  ASSERT_TRUE(world.ok());
  this->template put_all<device::Thread>(world, kData, 1);
  this->template put_all<device::Thread>(world, kRelaxed, 2);
}

// Fault: local and remote ends of a read exchanged; data looked at before it is there.
TYPED_TEST(Orderings, GetMovesEveryLength) {
  auto world = this->make_world();
  ASSERT_TRUE(world.ok());
  this->template get_all<device::Thread>(world, 1);
}

// Fault: a value of fewer than 8 B that is written with its neighbours, or from the wrong end.
TYPED_TEST(Orderings, PutValueWritesItsBytesOnly) { this->values(); }

// Fault: operands or results in the wrong byte order or order; a swap that takes place though it does not
// match.
TYPED_TEST(Orderings, AtomicsReturnTheOldValue) {
  auto world = this->make_world();
  ASSERT_TRUE(world.ok());
  this->template atomics<device::Thread>(world);
  EXPECT_EQ(world.word(1, {kSignals, 64}), 0x1122334455667788u);
}

}  // namespace
}  // namespace belfry::conformance
