#include "belfry/host/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

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

// Guards against a misspelled variable being ignored without a word.
TEST(Environment, FindsMisspelledNames) {
  const std::vector<std::string> names = {"PATH", "BELFRY_NIC", "BELFRY_GID_INDX", "BELFRY_SOFTNIC",
                                          "BELFRY_SOFTNIC_MTU"};
  EXPECT_THAT(Environment::unknown(names), ElementsAre("BELFRY_GID_INDX"));
}

}  // namespace
}  // namespace belfry::host
