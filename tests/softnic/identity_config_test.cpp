#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "softnic/config_variables.hpp"

namespace belfry::softnic {
namespace {

void clear() {
  for (const ConfigVariable& variable : config_variables()) {
    unsetenv(std::string(kEnvironmentPrefix).append(variable.suffix).c_str());
  }
}

class ConfigEnvironment : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static std::string refusal(const char* name, const char* value) {
    setenv(name, value, 1);
    std::string message;
    try {
      Config::from_environment();
    } catch (const std::invalid_argument& error) {
      message = error.what();
    }
    unsetenv(name);
    return message;
  }
};

// Guards against a default that the environment changes when it says nothing.
TEST_F(ConfigEnvironment, EmptyEnvironmentGivesTheDefaults) {
  const Config config = Config::from_environment();
  EXPECT_EQ(config.devices, 1u);
  EXPECT_EQ(config.fabric, "default");
  EXPECT_EQ(config.limits.mkeys, Limits{}.mkeys);
  EXPECT_TRUE(config.direct_loopback);
  EXPECT_TRUE(to_environment(config).empty());
}

// Guards against a setting that the launcher writes and the library reads back differently.
TEST_F(ConfigEnvironment, WhatIsWrittenIsReadBack) {
  Config config;
  config.devices = 4;
  config.node = 9;
  config.fabric = "lab-2.a";
  config.link = LinkLayer::ethernet;
  config.mtu = 4200;
  config.idle.spin = std::chrono::microseconds(0);
  config.idle.sleep_first = std::chrono::microseconds(7);
  config.idle.sleep_most = std::chrono::microseconds(900);
  config.faults.drop = 0.0125;
  config.limits.qps = 12;
  config.limits.send_queue_blocks = 512;
  config.seed = 18446744073709551615u;
  config.direct_loopback = false;
  for (const auto& [name, value] : to_environment(config)) setenv(name.c_str(), value.c_str(), 1);
  const Config read = Config::from_environment();
  EXPECT_EQ(to_environment(read), to_environment(config));
  EXPECT_EQ(read.mtu, 4200u);
  EXPECT_EQ(read.seed, config.seed);
  EXPECT_EQ(read.faults.drop, 0.0125);
  EXPECT_EQ(read.idle.sleep_most.count(), 900);
  EXPECT_FALSE(read.direct_loopback);
}

// Guards against numbers that are half read ("8x" as 8), out of range, signed, spaced or absent.
TEST_F(ConfigEnvironment, RefusesWhatIsNotAWholeNumberInRange) {
  for (const char* bad : {"", " 1", "1 ", "8x", "-1", "+1", "0", "17", "1e1", "99999999999999999999"}) {
    EXPECT_NE(refusal("BELFRY_SOFTNIC_DEVICES", bad), "") << "'" << bad << "'";
  }
  for (const char* bad : {"nan", "inf", "-0.1", "1.01", "0,5", ".5x"}) {
    EXPECT_NE(refusal("BELFRY_SOFTNIC_DROP", bad), "") << "'" << bad << "'";
  }
  for (const char* bad : {"50", "50:", ":50", "100:50", "0:50", "1:2:3"}) {
    EXPECT_NE(refusal("BELFRY_SOFTNIC_SLEEP_US", bad), "") << "'" << bad << "'";
  }
  for (const char* bad : {"", "a/b", "a b", "ab\n"}) {
    EXPECT_NE(refusal("BELFRY_SOFTNIC_FABRIC", bad), "") << "'" << bad << "'";
  }
  EXPECT_NE(refusal("BELFRY_SOFTNIC_LINK", "infiniband"), "");
  EXPECT_NE(refusal("BELFRY_SOFTNIC_DIRECT", "yes"), "");
}

// Guards against a message that leaves the reader to guess: variable, value, range and unit are in it.
TEST_F(ConfigEnvironment, MessageNamesVariableValueRangeAndUnit) {
  const std::string message = refusal("BELFRY_SOFTNIC_SPIN_US", "fast");
  EXPECT_NE(message.find("BELFRY_SOFTNIC_SPIN_US"), std::string::npos) << message;
  EXPECT_NE(message.find("fast"), std::string::npos) << message;
  EXPECT_NE(message.find("0..1000000"), std::string::npos) << message;
  EXPECT_NE(message.find("microseconds"), std::string::npos) << message;
}

// Guards against an MTU that the link layer does not have.
TEST_F(ConfigEnvironment, MtuMustFitTheLinkLayer) {
  EXPECT_NE(refusal("BELFRY_SOFTNIC_MTU", "1500"), "") << "InfiniBand has no MTU of 1500";
  EXPECT_EQ(refusal("BELFRY_SOFTNIC_MTU", "2048"), "");
  setenv("BELFRY_SOFTNIC_LINK", "eth", 1);
  EXPECT_EQ(refusal("BELFRY_SOFTNIC_MTU", "1500"), "");
  EXPECT_NE(refusal("BELFRY_SOFTNIC_MTU", "300"), "") << "no path MTU fits";
}

// Guards against a setting whose default its own reader refuses.
TEST_F(ConfigEnvironment, EveryDefaultIsAccepted) {
  const Config defaults;
  for (const ConfigVariable& variable : config_variables()) {
    Config config;
    EXPECT_NO_THROW(set_variable(config, variable, variable.write(defaults), variable.flag)) << variable.flag;
    EXPECT_FALSE(variable.help.empty());
  }
}

}  // namespace
}  // namespace belfry::softnic
