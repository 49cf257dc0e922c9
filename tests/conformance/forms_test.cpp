// What each operation does when a warp or a block calls it together.

#include "conformance/operations.hpp"

namespace belfry::conformance {
namespace {

template <class Configuration>
class Forms : public OperationsCase<Configuration> {};
TYPED_TEST_SUITE(Forms, FewConfigurations, ConfigurationNames);

// Fault: a length, an address or a key of a piece that is wrong; a piece too many or too few at the edges of
// the device's limit; bytes written beyond the end; a message of no bytes taken for one of 2 GiB.
TYPED_TEST(Forms, PutMovesEveryLength) {
  auto world = this->make_world();
  ASSERT_TRUE(world.ok());
  this->template put_all<device::Warp>(world, kData, 1);
  this->template put_all<device::Block>(world, kRelaxed, 2);
}

// Fault: local and remote ends of a read exchanged; data looked at before it is there.
TYPED_TEST(Forms, GetMovesEveryLength) {
  auto world = this->make_world();
  ASSERT_TRUE(world.ok());
  this->template get_all<device::Warp>(world, 1);
  this->template get_all<device::Block>(world, 2);
}

// Fault: operands or results in the wrong byte order or order; a swap that takes place though it does not
// match; a form in which more than one thread posts.
TYPED_TEST(Forms, AtomicsReturnTheOldValue) {
  auto world = this->make_world();
  ASSERT_TRUE(world.ok());
  this->template atomics<device::Warp>(world);
  this->template atomics<device::Block>(world);
  EXPECT_EQ(world.word(1, {kSignals, 64}), 0x1122334455667788u);
}

}  // namespace
}  // namespace belfry::conformance
