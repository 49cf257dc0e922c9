/// The two forms of a diagnosis.

#include "doctor/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "doctor/world.hpp"

namespace belfry::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

Diagnosis sample() {
  World world;
  world.files["/sys/class/net/eth0/mtu"] = "1500";
  return world.examine();
}

// Fault: the JSON lacks a finding or a field, or cannot be parsed.
TEST(Report, JsonHoldsEverything) {
  const Diagnosis diagnosis = sample();
  const auto document = nlohmann::json::parse(to_json(diagnosis));
  EXPECT_EQ(document.at("schema"), "belfry-doctor");
  EXPECT_EQ(document.at("schema_version"), 1);
  EXPECT_EQ(document.at("usable"), true);
  EXPECT_EQ(document.at("software_nic"), false);
  EXPECT_EQ(document.at("devices"), nlohmann::json({"mlx5_0"}));
  ASSERT_EQ(document.at("findings").size(), diagnosis.findings.size());
  std::size_t counted = 0;
  for (const auto& [severity, count] : document.at("counts").items()) counted += count.get<std::size_t>();
  EXPECT_EQ(counted, diagnosis.findings.size());
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    const auto& entry = document.at("findings")[i];
    const Finding& finding = diagnosis.findings[i];
    EXPECT_EQ(entry.at("id"), finding.id);
    EXPECT_EQ(entry.at("severity"), to_string(finding.severity));
    EXPECT_EQ(entry.at("subject"), finding.subject);
    EXPECT_EQ(entry.at("found"), finding.found);
    EXPECT_EQ(entry.at("remedy"), finding.remedy);
    if (finding.id == "proof.passed") {
      EXPECT_EQ(entry.at("figures").at("first_time_ns"), 5000);
    }
    if (finding.id == "mtu.netdev_small") {
      EXPECT_EQ(entry.at("figures").at("path_mtu_bytes"), 1024);
    }
  }
}

// Fault: bytes that are not UTF-8 make the JSON throw.
TEST(Report, JsonOfForeignBytes) {
  Diagnosis diagnosis = sample();
  diagnosis.findings.front().found = "\xff\xfe";
  EXPECT_NO_THROW(nlohmann::json::parse(to_json(diagnosis)));
}

// Fault: a problem without its reason and remedy, or a line too wide for a terminal.
TEST(Report, TextNamesTheRemedy) {
  const std::string text = to_text(sample());
  EXPECT_THAT(
      text,
      HasSubstr("  warning  mlx5_0 port 1: eth0 has MTU 1500: path MTU 1024 of 4096 B [mtu.netdev_small]\n"));
  EXPECT_THAT(text, HasSubstr("do: `ip link set eth0 mtu 4200`"));
  EXPECT_THAT(text, HasSubstr("usable: 0 errors, 1 warnings"));
  EXPECT_THAT(text, Not(HasSubstr("SOFTWARE")));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

// Fault: --problems shows what is in order, or hides what is not.
TEST(Report, ProblemsOnly) {
  const std::string text = to_text(sample(), true);
  EXPECT_THAT(text, HasSubstr("mtu.netdev_small"));
  EXPECT_THAT(text, Not(HasSubstr("gid.chosen")));
  EXPECT_THAT(text, HasSubstr("usable: "));
}

// Fault: a result from the software NIC passes for one of hardware.
TEST(Report, SoftwareNicIsNamed) {
  World world;
  world.files[pci_of() + "/infiniband/mlx5_0/board_id"] = "BELFRY00000001";
  const Diagnosis diagnosis = world.examine();
  EXPECT_THAT(to_text(diagnosis), HasSubstr("SOFTWARE NIC"));
  EXPECT_EQ(nlohmann::json::parse(to_json(diagnosis)).at("software_nic"), true);
}

}  // namespace
}  // namespace belfry::doctor
