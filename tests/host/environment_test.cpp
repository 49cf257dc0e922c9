#include "belfry/host/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "belfry/host/tcp_bootstrap.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Environment parse(const std::map<std::string, std::string, std::less<>>& values) {
  return Environment::parse([&](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  });
}

// Guards against defaults that differ from what the documentation says, and empty values counting as set.
TEST(Environment, Defaults) {
  const Environment e = parse({{"BELFRY_GID_INDEX", ""}, {"BELFRY_NIC", ""}});
  EXPECT_EQ(e.nic, "auto");
  EXPECT_FALSE(e.gid_index);
  EXPECT_FALSE(e.path_mtu);
  EXPECT_FALSE(e.bootstrap_address);
  EXPECT_EQ(e.bootstrap_timeout, std::chrono::seconds(60));
}

// Guards against a variable that is documented and never read.
TEST(Environment, EveryVariableIsRead) {
  std::map<std::string, std::string, std::less<>> values;
  for (const EnvironmentVariable& variable : Environment::variables()) values.emplace(variable.name, "bad");
  for (const auto& [name, value] : values) {
    if (name == "BELFRY_NIC" || name == "BELFRY_BOOTSTRAP_ADDRESS") continue;  // any text is taken
    const Error error = expect_error(ErrorKind::bad_argument, [&] { parse({{name, value}}); });
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
  EXPECT_EQ(parse({{"BELFRY_NIC", "mlx5_7:2"}}).nic, "mlx5_7:2");
  EXPECT_EQ(parse({{"BELFRY_BOOTSTRAP_ADDRESS", "h:1"}}).bootstrap_address, "h:1");
}

// Guards against numbers parsed up to the first stray character, and ranges that are not checked.
TEST(Environment, RefusesBadValuesWithTheRange) {
  for (const char* bad : {"abc", "-1", "256", "3x", " 3", "0x3", "99999999999999999999"}) {
    const Error error = expect_error(ErrorKind::bad_argument, [&] { parse({{"BELFRY_GID_INDEX", bad}}); });
    EXPECT_THAT(error.what(), HasSubstr("BELFRY_GID_INDEX"));
    EXPECT_THAT(error.what(), HasSubstr(bad));
    EXPECT_THAT(error.what(), HasSubstr("0..255"));
  }
  expect_error(ErrorKind::bad_argument, [] { parse({{"BELFRY_PATH_MTU", "1500"}}); });
  expect_error(ErrorKind::bad_argument, [] {
    parse({{"BELFRY_BOOTSTRAP_RANK", "2"}, {"BELFRY_BOOTSTRAP_SIZE", "2"}});
  });
}

// Guards against the limits of a range being refused.
TEST(Environment, TakesTheLimits) {
  const Environment e = parse({{"BELFRY_GID_INDEX", "255"},
                               {"BELFRY_PATH_MTU", "4096"},
                               {"BELFRY_ACK_TIMEOUT", "31"},
                               {"BELFRY_RNR_RETRY", "0"},
                               {"BELFRY_BOOTSTRAP_RANK", "65535"},
                               {"BELFRY_BOOTSTRAP_SIZE", "65536"},
                               {"BELFRY_BOOTSTRAP_TIMEOUT", "86400"}});
  EXPECT_EQ(e.gid_index, 255);
  EXPECT_EQ(e.path_mtu, 4096u);
  EXPECT_EQ(e.ack_timeout, 31);
  EXPECT_EQ(e.rnr_retry, 0);
  EXPECT_EQ(e.bootstrap_rank, 65535);
  EXPECT_EQ(e.bootstrap_timeout, std::chrono::hours(24));
}

using Values = std::map<std::string, std::string, std::less<>>;

const Values kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "1234"}};
const Values kSlurm = {
    {"SLURM_PROCID", "1"},  {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_STEP_NODELIST", "gpu[007-9,12],x"},
    {"SLURM_JOB_ID", "99"}, {"SLURM_STEP_ID", "0"},        {"SLURM_NTASKS", "8"}};
const Values kTorchrun = {
    {"RANK", "2"}, {"WORLD_SIZE", "16"}, {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}};

Values with(Values values, const Values& others) {
  for (const auto& [name, value] : others) values[name] = value;
  return values;
}

// Guards against a launcher's ranks that each believe to be alone.
TEST(Environment, KnowsLaunchers) {
  const Environment mpi = parse(kOpenMpi);
  EXPECT_EQ(mpi.launcher, "OpenMPI");
  EXPECT_EQ(mpi.bootstrap_rank, 3);
  EXPECT_EQ(mpi.bootstrap_size, 4);
  EXPECT_THAT(mpi.bootstrap_address.value_or(""),
              testing::MatchesRegex("127\\.0\\.0\\.1:2[0-9][0-9][0-9][0-9]"));
  EXPECT_NE(parse(with(kOpenMpi, {{"PMIX_NAMESPACE", "1235"}})).bootstrap_address, mpi.bootstrap_address);

  const Environment slurm = parse(kSlurm);
  EXPECT_EQ(slurm.launcher, "Slurm");
  EXPECT_EQ(slurm.bootstrap_rank, 1);
  EXPECT_EQ(slurm.bootstrap_size, 8);
  EXPECT_THAT(slurm.bootstrap_address.value_or(""), testing::StartsWith("gpu007:2"));

  const Environment torchrun = parse(kTorchrun);
  EXPECT_EQ(torchrun.launcher, "torchrun");
  EXPECT_EQ(torchrun.bootstrap_rank, 2);
  EXPECT_EQ(torchrun.bootstrap_size, 16);
  EXPECT_EQ(torchrun.bootstrap_address, "head:29501");
}

// Guards against the outer launcher winning over the inner one, and either over the user.
TEST(Environment, TheInnermostLauncherCountsAndTheUserBeforeIt) {
  EXPECT_EQ(parse(with(kSlurm, kOpenMpi)).launcher, "OpenMPI");
  EXPECT_EQ(parse(with(kSlurm, kTorchrun)).launcher, "torchrun");
  const Environment own =
      parse(with(kOpenMpi, {{"BELFRY_BOOTSTRAP_RANK", "0"}, {"BELFRY_BOOTSTRAP_SIZE", "1"}}));
  EXPECT_EQ(own.launcher, "");
  EXPECT_EQ(own.bootstrap_rank, 0);
  EXPECT_EQ(parse(with(kOpenMpi, {{"BELFRY_BOOTSTRAP_ADDRESS", "h:1"}})).bootstrap_address, "h:1");
}

// Guards against a group that waits for ranks which nobody starts: a batch script, or names that are not
// torchrun's.
TEST(Environment, DoesNotTakeEverythingForALauncher) {
  EXPECT_FALSE(parse({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "99"}}).bootstrap_rank);
  EXPECT_FALSE(parse({{"RANK", "major"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}})
                   .bootstrap_rank);
  EXPECT_FALSE(parse({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).bootstrap_rank);
}

// Guards against an address made up for ranks on several hosts.
TEST(Environment, OpenMpiOnSeveralHostsNeedsAnAddress) {
  const Environment e = parse(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_EQ(e.bootstrap_size, 4);
  EXPECT_FALSE(e.bootstrap_address);
  const Error error = expect_error(ErrorKind::bad_argument, [&] { make_tcp_bootstrap(e); });
  EXPECT_THAT(error.what(), HasSubstr("OpenMPI does not tell it"));
  EXPECT_THAT(error.what(), HasSubstr("BELFRY_BOOTSTRAP_ADDRESS=HOST:PORT"));
  EXPECT_THAT(expect_error(ErrorKind::bad_argument,
                           [] {
                             parse(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "4"}}));
                           })
                  .what(),
              HasSubstr("rank 4 of 4"));
}

// Guards against a misspelled variable being ignored without a word.
TEST(Environment, FindsMisspelledNames) {
  const std::vector<std::string> names = {"PATH", "BELFRY_NIC", "BELFRY_GID_INDX", "BELFRY_SOFTNIC",
                                          "BELFRY_SOFTNIC_MTU"};
  EXPECT_THAT(Environment::unknown(names), ElementsAre("BELFRY_GID_INDX"));
}

}  // namespace
}  // namespace belfry::host
