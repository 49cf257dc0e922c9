/// `belfry doctor` from end to end: on the software NIC, with no NIC, and below another root.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/run_program.hpp"
#include "doctor/world.hpp"

namespace belfry::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What a test machine may or may not have is left out: GPUs, and a limit of locked memory.
const std::string kElsewhere = "gpu,doorbell,gpu-memory,gdrcopy,memlock";

std::set<std::string> ids_of(const nlohmann::json& document) {
  std::set<std::string> ids;
  for (const auto& finding : document.at("findings")) ids.insert(finding.at("id"));
  return ids;
}

// Fault: the proof is missing, not on both queues, or does not say that the NIC is software.
TEST(Doctor, TextOnTheSoftwareNic) {
  const Outcome outcome = run_belfry({"doctor", "--nic", "soft", "--skip", kElsewhere});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(outcome.out, HasSubstr("verbs queue: 64 B written and checked"));
  EXPECT_THAT(outcome.out, HasSubstr("DEVX queue: 64 B written and checked"));
  EXPECT_THAT(outcome.out, HasSubstr("usable: 0 errors"));
  EXPECT_THAT(outcome.out, HasSubstr("SOFTWARE NIC: this says nothing about hardware"));
}

// Fault: the JSON is mixed with text, or lacks the proof's time.
TEST(Doctor, JsonOnTheSoftwareNic) {
  const Outcome outcome = run_belfry({"doctor", "--nic", "soft", "--json", "--skip", kElsewhere});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("usable"), true);
  EXPECT_EQ(document.at("software_nic"), true);
  std::size_t proofs = 0;
  for (const auto& finding : document.at("findings")) {
    if (finding.at("id") != "proof.software") continue;
    ++proofs;
    EXPECT_GT(finding.at("figures").at("first_time_ns").get<std::int64_t>(), 0);
    EXPECT_EQ(finding.at("figures").at("software_nic"), 1);
  }
  EXPECT_EQ(proofs, 2u);
}

// Fault: on Ethernet the doctor and the software NIC disagree about GID, MTU or interface.
TEST(Doctor, EthernetBelowTheLauncher) {
  const Outcome outcome = run_belfry({"softnic", "--link", "eth", "--mtu", "2200", "--devices", "2", "--",
                                      BELFRY_PROGRAM, "doctor", "--json", "--skip", kElsewhere});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("devices").size(), 2u);
  for (const auto& finding : document.at("findings")) {
    if (finding.at("id") == "gid.chosen") {
      EXPECT_EQ(finding.at("figures").at("gid_index"), 3);
    }
    if (finding.at("id") == "mtu.netdev_small") {
      EXPECT_EQ(finding.at("figures").at("path_mtu_bytes"), 2048);
    }
  }
  EXPECT_THAT(ids_of(document), Contains("gid.chosen"));
  EXPECT_THAT(ids_of(document), Contains("mtu.netdev_small"));
}

// Fault: --no-wqe posts all the same, or the result hides that nothing was proved.
TEST(Doctor, NoWqe) {
  const Outcome outcome =
      run_belfry({"doctor", "--nic", "soft", "--json", "--no-wqe", "--only", "nodes,proof"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto ids = ids_of(nlohmann::json::parse(outcome.out));
  EXPECT_THAT(ids, Contains("nodes.open"));
  EXPECT_THAT(ids, Contains("doctor.left_out"));
  EXPECT_THAT(ids, Not(Contains("proof.software")));
}

// Fault: a machine with no NIC, seen through another root, passes; or the remedy is not named.
TEST(Doctor, NoNicBelowAnotherRoot) {
  doctor::World world;
  doctor::remove_below(world.files, "/sys/class/infiniband");
  doctor::remove_below(world.files, doctor::pci_of());
  const doctor::FakeRoot root(world.files);
  const Outcome text = run_belfry({"doctor", "--root", root.path()});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, HasSubstr("[devices.none]"));
  EXPECT_THAT(text.out, HasSubstr("do: load the driver: `modprobe mlx5_ib ib_uverbs`"));
  EXPECT_THAT(text.out, HasSubstr("NOT USABLE: 1 errors"));
  EXPECT_THAT(text.err, IsEmpty());
  const Outcome json = run_belfry({"doctor", "--json", "--root", root.path()});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(json.out).at("usable"), false);
}

// Fault: another machine's files are judged by what this one has.
TEST(Doctor, WholeMachineBelowAnotherRoot) {
  const doctor::FakeRoot root(doctor::World().files);
  const Outcome outcome = run_belfry({"doctor", "--json", "--root", root.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("gpus"), 1);
  EXPECT_THAT(ids_of(document), Contains("proof.untried"));
  EXPECT_THAT(ids_of(document), Not(Contains("versions.rdma_core")));
}

// Fault: a wrong command line is taken for an unusable machine.
TEST(Doctor, WrongCommandLinesEndWithTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {"doctor", "--only", "bogus"},
      {"doctor", "--skip", "gid,bogus"},
      {"doctor", "--nic", "mlx5_0"},
      {"doctor", "--root", "/none"},
      {"doctor", "--root", "/tmp", "--nic", "soft"},
      {"doctor", "bogus"},
  };
  for (const auto& arguments : wrong) {
    const Outcome outcome = run_belfry(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments[1] << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr("belfry: "));
  }
}

// Fault: a device that is not there is left out without a word.
TEST(Doctor, AnUnknownDeviceIsNamed) {
  const Outcome outcome = run_belfry({"doctor", "--nic", "soft", "--device", "mlx5_0,mlx5_99"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("no RDMA device named mlx5_99"));
}

// Fault: --help does not say which checks there are, or what the exit codes mean.
TEST(Doctor, HelpListsTheChecks) {
  const Outcome outcome = run_belfry({"doctor", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  for (const doctor::Check& check : doctor::checks()) {
    EXPECT_THAT(outcome.out, HasSubstr("\n  " + std::string(check.name) + " "));
  }
  EXPECT_THAT(outcome.out, HasSubstr("Exit codes: 0 usable"));
}

}  // namespace
}  // namespace belfry::cli
