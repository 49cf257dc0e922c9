#include "softnic/fabric/make_fabric.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "softnic/fabric/faulty_fabric.hpp"
#include "softnic/fabric/memory_fabric.hpp"
#include "softnic/fabric/processes.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

// Fault: a configuration that does not reach the fabric: its name, its seed.
TEST(MakeFabric, MakesSharedFabrics) {
  ASSERT_EQ(SharedFabric::obstacle(), "");
  Config config;
  config.fabric = unique_fabric();
  config.seed = 12;
  const auto a = make_fabric(config), b = make_fabric(config);
  ASSERT_NE(dynamic_cast<SharedFabric*>(a.get()), nullptr);
  const auto block = *a->claim_block();
  EXPECT_NE(*b->claim_block(), block);
  ASSERT_EQ(TestFrame(1, 0, 64).send(*b, qpn_of(block)), SendOutcome::sent);
  CheckingReceiver receiver;
  EXPECT_TRUE(poll_until(*a, receiver, [&] { return receiver.frames == 1; }));
  config.fabric = unique_fabric();
  EXPECT_EQ(*make_fabric(config)->claim_block(), block);
}

// Fault: planned faults that do not happen.
TEST(MakeFabric, AppliesFaults) {
  Config config;
  config.fabric = unique_fabric();
  config.faults.drop = 1;
  const auto port = make_fabric(config);
  ASSERT_NE(dynamic_cast<FaultyFabric*>(port.get()), nullptr);
  const auto qpn = qpn_of(*port->claim_block());
  ASSERT_EQ(TestFrame(1, 0, 64).send(*port, qpn), SendOutcome::sent);
  CheckingReceiver receiver;
  EXPECT_EQ(port->poll(receiver, 10), 0u);
}

// Fault: a process that can have no socket gets no NIC at all, and is not told why.
TEST(MakeFabric, FallsBackWithinOneProcess) {
  Child child([] {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 1;
    const std::string why = SharedFabric::obstacle();
    if (why.find("ulimit -n") == std::string::npos) return 2;
    Config config;
    config.fabric = unique_fabric();
    const auto port = make_fabric(config);
    if (dynamic_cast<MemoryFabric*>(port.get()) == nullptr) return 3;
    const auto block = port->claim_block();
    if (!block || TestFrame(1, 0, 64).send(*port, qpn_of(*block)) != SendOutcome::sent) return 4;
    CheckingReceiver receiver;
    return port->poll(receiver, 10) == 1 && receiver.clean() ? 0 : 5;
  });
  EXPECT_EQ(child.join(20s), 0);
}

}  // namespace
}  // namespace belfry::softnic
