/// Each kind of finding, on a machine that has it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "belfry/host/errors.hpp"
#include "doctor/cases.hpp"
#include "doctor/report.hpp"

namespace belfry::doctor {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto* part : {&device_cases, &port_cases, &gpu_cases, &platform_cases}) {
    const std::vector<Case> cases = part();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

class Findings : public testing::TestWithParam<Case> {};

/// Remedies are commands: a placeholder that nobody filled in is none.
void expect_filled(const Diagnosis& diagnosis) {
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_EQ(finding.remedy.find('<'), std::string::npos) << finding.id << ": " << finding.remedy;
    EXPECT_FALSE(finding.found.empty()) << finding.id;
    EXPECT_FALSE(finding.subject.empty()) << finding.id;
  }
}

// Fault: each case's name says it.
TEST_P(Findings, AreFound) {
  const Case& one = GetParam();
  World world;
  one.change(world);
  const Diagnosis diagnosis = world.examine();
  const std::string text = to_text(diagnosis);
  const std::set<std::string> ids = ids_of(diagnosis);
  for (const std::string& id : one.expected) EXPECT_THAT(ids, Contains(id)) << text;
  for (const std::string& id : one.absent) EXPECT_THAT(ids, Not(Contains(id))) << text;
  EXPECT_EQ(diagnosis.usable, one.usable) << text;
  std::string all;
  for (const Finding& f : diagnosis.findings) all += f.found + '\n' + f.why + '\n' + f.remedy + '\n';
  for (const std::string& part : one.texts) EXPECT_THAT(all, HasSubstr(part));
  expect_filled(diagnosis);
}

INSTANTIATE_TEST_SUITE_P(Cases, Findings, testing::ValuesIn(all_cases()),
                         [](const auto& one) { return one.param.name; });

/// What only the live machine can show: the libraries that this very program was loaded with.
const std::set<std::string> kLiveOnly = {"versions.rdma_core", "versions.mismatch", "versions.old"};

// Fault: a finding that no test has ever seen.
TEST(Catalogue, EveryRuleHasACase) {
  std::set<std::string> seen = kLiveOnly;
  for (const Case& one : all_cases()) seen.insert(one.expected.begin(), one.expected.end());
  seen.insert("doctor.nothing");  // NothingToLookAt, below
  for (const Rule& rule : catalogue()) EXPECT_THAT(seen, Contains(std::string(rule.id)));
}

// Fault: two findings share an id, an id does not name its check, or an error names no remedy.
TEST(Catalogue, RulesAreWellFormed) {
  std::set<std::string_view> ids;
  for (const Check& check : checks()) {
    for (const Rule& rule : check.rules) {
      EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
      EXPECT_EQ(rule.id.substr(0, rule.id.find('.')), check.name) << rule.id;
      EXPECT_FALSE(rule.meaning.empty()) << rule.id;
      if (rule.severity == Severity::error || rule.severity == Severity::warning) {
        EXPECT_FALSE(rule.remedy.empty() && rule.why.empty()) << rule.id;
      }
      if (rule.severity == Severity::error) {
        EXPECT_FALSE(rule.remedy.empty()) << rule.id;
      }
      if (rule.severity == Severity::ok) {
        EXPECT_TRUE(rule.remedy.empty()) << rule.id;
      }
    }
  }
}

// Fault: a check that found nothing to look at leaves no trace, and looks like one that passed.
TEST(Doctor, NothingToLookAt) {
  World world;
  world.files.clear();
  const Diagnosis diagnosis = world.examine();
  EXPECT_THAT(ids_of(diagnosis), Contains("doctor.nothing"));
  EXPECT_FALSE(diagnosis.usable);
  expect_filled(diagnosis);
}

// Fault: a device that is not there is silently left out.
TEST(Doctor, UnknownDevice) {
  World world;
  world.options.devices = {"mlx5_7"};
  try {
    world.examine();
    FAIL() << "no error";
  } catch (const host::Error& error) {
    EXPECT_EQ(error.kind(), host::ErrorKind::no_device);
    EXPECT_THAT(error.what(), HasSubstr("mlx5_7 (devices: mlx5_0)"));
  }
}

// Fault: --device looks at others, too.
TEST(Doctor, NamedDevicesOnly) {
  World world;
  NicShape shape;
  shape.name = "mlx5_1";
  shape.address = "0000:05:00.0";
  shape.uverbs = "uverbs1";
  add_nic(world.files, shape);
  world.options.devices = {"mlx5_1"};
  const Diagnosis diagnosis = world.examine();
  EXPECT_EQ(diagnosis.devices, std::vector<std::string>{"mlx5_1"});
  for (const Finding& finding : diagnosis.findings) EXPECT_NE(finding.device, "mlx5_0");
}

}  // namespace
}  // namespace belfry::doctor
