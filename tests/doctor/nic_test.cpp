/// The live trials, on the software NIC.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "belfry/host/device_list.hpp"
#include "doctor/doctor.hpp"
#include "doctor/loopback.hpp"

namespace belfry::doctor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Fault: the proof does not run on both kinds of queue, or passes without a payload.
TEST(Live, ProvesBothQueues) {
  const auto trials = live_trials();
  const std::vector<Proof> proofs = trials->prove("mlx5_0", 1);
  ASSERT_EQ(proofs.size(), 2u);
  EXPECT_EQ(proofs[0].queue, "verbs");
  EXPECT_EQ(proofs[1].queue, "DEVX");
  for (const Proof& proof : proofs) {
    EXPECT_THAT(proof.problem, IsEmpty());
    EXPECT_FALSE(proof.wrong_payload);
    EXPECT_GT(proof.first_ns, 0);
    EXPECT_GT(proof.median_ns, 0);
    EXPECT_EQ(proof.repeats, 32u);
  }
}

// Fault: a port that is not there ends the doctor instead of the proof.
TEST(Live, AMissingPortIsAFailedProof) {
  const std::vector<Proof> proofs = live_trials()->prove("mlx5_0", 9);
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_THAT(proofs[0].problem, HasSubstr("has no port 9"));
}

// Fault: a device that opens is reported as closed, or its DEVX and register go unasked.
TEST(Live, TriesTheNic) {
  const auto trials = live_trials();
  const NicTrial& nic = trials->nic("mlx5_0");
  EXPECT_TRUE(nic.opened) << nic.problem;
  EXPECT_TRUE(nic.devx.available);
  EXPECT_TRUE(nic.devx.no_record);
  EXPECT_TRUE(nic.register_allocated) << nic.register_problem;
  EXPECT_TRUE(nic.register_dedicated);
  EXPECT_TRUE(nic.atomics);
  EXPECT_EQ(nic.path_mtu.count(1), 1u);
  EXPECT_FALSE(trials->nic("mlx5_99").opened);
  EXPECT_THAT(trials->nic("mlx5_99").problem, HasSubstr("does not list it"));
  EXPECT_EQ(trials->open_node("/dev/infiniband/uverbs0"), 0);
  EXPECT_EQ(trials->open_node("/dev/infiniband/uverbs77"), ENOENT);
}

// Fault: the libraries' versions are read from their sonames, or not at all.
TEST(Live, KnowsTheLoadedLibraries) {
  const LoadedLibraries libraries = loaded_libraries();
  EXPECT_THAT(rdma_core_release(libraries.libibverbs), Not(IsEmpty())) << libraries.libibverbs;
  EXPECT_EQ(rdma_core_release(libraries.libibverbs), rdma_core_release(libraries.libmlx5));
}

// Fault: the facts of the live tree and those of the device do not meet.
TEST(Live, WholeVisit) {
  const auto trials = live_trials();
  Options options;
  options.skip = {"gpu", "doorbell", "gpu-memory", "gdrcopy", "memlock"};
  host::Environment environment;
  environment.nic = "soft";
  const Diagnosis diagnosis = examine(Tree(), environment, trials.get(), options);
  EXPECT_TRUE(diagnosis.usable);
  EXPECT_TRUE(diagnosis.software_nic);
  std::size_t proofs = 0;
  for (const Finding& finding : diagnosis.findings) proofs += finding.id == "proof.software" ? 1 : 0;
  EXPECT_EQ(proofs, 2u);
}

}  // namespace
}  // namespace belfry::doctor
