/// \file
/// What runs measured kernels, apart from any NIC.

#include <gmock/gmock.h>

#include <set>

#include "belfry/host/errors.hpp"
#include "bench/kernel_runner.hpp"
#include "bench/kernels/policies.hpp"
#include "bench/published.hpp"

namespace belfry::bench {
namespace {

using testing::HasSubstr;

// Fault: an arm without a kernel measures nothing, and says so nowhere.
TEST(KernelRunner, AnUnknownArmIsRefused) {
  const auto runner = make_lane_runner(false);
  EXPECT_THROW(runner->puts("gda-nonsense", PutJob{}), std::invalid_argument);
  EXPECT_THROW(runner->echo("verbs-inline", FlagJob{}), std::invalid_argument);
}

// Fault: what kernels write begins with somebody else's bytes.
TEST(KernelRunner, MemoryBeginsAsZeros) {
  const auto runner = make_lane_runner(false);
  const auto words = allocate_of<std::uint64_t>(*runner, 1000);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(words.get()[i], 0u);
  const auto end = allocate_of<KernelEnd>(*runner, 1);
  EXPECT_TRUE(end->outcome.ok());
  EXPECT_FALSE(end->wrong);
}

// Fault: a kernel that gave up passes for one that measured.
TEST(KernelRunner, AKernelsFailureIsThrown) {
  KernelEnd end;
  EXPECT_NO_THROW(check_end(end, "x"));
  end.outcome.status = device::Status::timed_out;
  EXPECT_THROW(check_end(end, "x"), host::Error);
  end.outcome.status = device::Status::completion_error;
  end.outcome.fault.syndrome = wire::Syndrome::remote_access;
  end.outcome.fault.qpn = 77;
  try {
    check_end(end, "the puts");
    FAIL();
  } catch (const host::Error& error) {
    EXPECT_EQ(error.kind(), host::ErrorKind::completion);
    EXPECT_THAT(error.message(), HasSubstr("the puts"));
    EXPECT_THAT(error.message(), HasSubstr("QP 77"));
    EXPECT_THAT(error.message(), HasSubstr("0x13"));
  }
}

// Fault: an ordering is measured under another one's name, twice, or not at all.
TEST(OpArms, CoverEveryOrderingInBothModes) {
  std::set<std::string> names;
  std::set<std::pair<device::Ordering, device::DoorbellMode>> inlined;
  for_each_op_arm([&](auto arm) {
    using Policy = typename decltype(arm)::Policy;
    EXPECT_TRUE(names.insert(arm.name).second) << arm.name;
    const std::string reference = arm.reference;
    if (!reference.empty()) {
      EXPECT_NE(find_published(reference, "issue", "P-IB"), nullptr) << reference;
    }
    if (reference.starts_with("ordering/")) {
      EXPECT_EQ(reference, std::string("ordering/") + device::ordering_name(Policy::ordering));
    }
    if (Policy::payload == device::Payload::inlined)
      inlined.insert({Policy::ordering, Policy::doorbell_mode});
  });
  // Without a record gpu_fence_record is gpu_fence.
  EXPECT_EQ(inlined.size(), 7u + 6u);
}

// Fault: a form or protocol of mini-proxy is measured under another one's name, or an arm twice.
TEST(ProxyArms, CoverTunedAndBaselineInBothForms) {
  using device::proxy::Form;
  using device::proxy::Protocol;
  std::set<std::string> names;
  std::set<std::pair<Protocol, Form>> from_memory;
  for_each_op_arm([&](auto arm) { names.insert(arm.name); });
  for_each_proxy_arm([&](auto arm) {
    using Arm = decltype(arm);
    EXPECT_TRUE(names.insert(arm.name).second) << arm.name;
    if (*arm.reference != '\0') {
      EXPECT_NE(find_published(arm.reference, "issue", "P-IB"), nullptr) << arm.reference;
    }
    if (Arm::from == PutFrom::register_) return;
    // What the put does not publish must be visible before it.
    EXPECT_EQ(Arm::from == PutFrom::visible_memory, Arm::Policy::form == Form::payload_visible) << arm.name;
    from_memory.insert({Arm::Policy::protocol, Arm::Policy::form});
  });
  EXPECT_EQ(from_memory.size(), 4u);
}

}  // namespace
}  // namespace belfry::bench
