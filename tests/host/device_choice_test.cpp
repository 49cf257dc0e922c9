#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "belfry/host/device_list.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

DeviceInfo device(const char* name, bool mlx5, unsigned active_port) {
  DeviceInfo info;
  info.name = name;
  info.board_id = "MT_0000000838";
  info.mlx5_driver = mlx5;
  info.vendor_id = mlx5 ? kMellanoxVendorId : 0x1d0f;
  info.probed = true;
  info.ports = 2;
  info.first_active_port = active_port;
  return info;
}

DeviceInfo software(const char* name) {
  DeviceInfo info = device(name, true, 1);
  info.board_id = "BELFRY0000001";
  info.software_nic = is_software_board(info.board_id);
  return info;
}

DeviceChoice choose(const std::vector<DeviceInfo>& devices, const char* request) {
  return choose_device(devices, DeviceRequest::parse(request));
}

// Guards against choosing a port without a cable because it comes first.
TEST(DeviceChoice, AutomaticTakesTheFirstActiveMlx5) {
  const std::vector<DeviceInfo> devices = {software("soft0"), device("other0", false, 1),
                                           device("mlx5_0", true, 0), device("mlx5_1", true, 2)};
  const DeviceChoice choice = choose(devices, "auto");
  EXPECT_EQ(choice.index, 3u);
  EXPECT_EQ(choice.port, 2u);
  EXPECT_THAT(choice.reason, AllOf(HasSubstr("mlx5_1"), HasSubstr("port 2"), HasSubstr("hardware")));
}

// Guards against a foreign NIC being preferred to the software ConnectX, on which everything runs.
TEST(DeviceChoice, AutomaticFallsBackToSoftwareThenOthers) {
  EXPECT_EQ(choose({device("other0", false, 1), software("soft0")}, "auto").index, 1u);
  EXPECT_EQ(choose({device("mlx5_0", true, 0), device("other0", false, 1)}, "auto").index, 1u);
}

// Guards against an mlx5 device being told by its name: administrators rename devices.
TEST(DeviceChoice, NameDoesNotMakeAnMlx5) {
  DeviceInfo impostor = device("mlx5_0", false, 1);
  EXPECT_FALSE(impostor.mlx5());
  EXPECT_EQ(choose({impostor, device("ibp24s0", true, 1)}, "auto").index, 1u);
  DeviceInfo driver_only = device("x", true, 1);
  driver_only.vendor_id = 0x1234;
  EXPECT_FALSE(driver_only.mlx5());
}

// Guards against `soft` meaning a hardware device, and against a bare "not found".
TEST(DeviceChoice, SoftwareOnRequest) {
  EXPECT_EQ(choose({device("mlx5_0", true, 1), software("mlx5_1")}, "soft").index, 1u);
  const Error error = expect_error(ErrorKind::no_device, [] { choose({device("mlx5_0", true, 1)}, "soft"); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("belfry softnic -- COMMAND"), HasSubstr("mlx5_0")));
}

// Guards against a typo in a name being answered by another device, or a port by another port.
TEST(DeviceChoice, ByNameAndPort) {
  const std::vector<DeviceInfo> devices = {device("mlx5_0", true, 1), device("mlx5_1", true, 0)};
  EXPECT_EQ(choose(devices, "mlx5_0").port, 1u);
  EXPECT_EQ(choose(devices, "mlx5_0:2").port, 2u);
  EXPECT_THAT(expect_error(ErrorKind::no_device, [&] { choose(devices, "mlx5_2"); }).what(),
              AllOf(HasSubstr("mlx5_2"), HasSubstr("mlx5_0, mlx5_1 (no active port)")));
  expect_error(ErrorKind::bad_argument, [&] { choose(devices, "mlx5_0:3"); });
  expect_error(ErrorKind::not_reachable, [&] { choose(devices, "mlx5_1"); });
}

// Guards against an empty machine being reported without a way out.
TEST(DeviceChoice, NoDeviceAtAll) {
  EXPECT_THAT(expect_error(ErrorKind::no_device, [] { choose({}, "auto"); }).what(), HasSubstr("--nic soft"));
  expect_error(ErrorKind::no_device, [] { choose({device("mlx5_0", true, 0)}, "auto"); });
}

// Guards against "no device" where there is one that this user may not open.
TEST(DeviceChoice, DeniedDeviceIsAPermissionError) {
  DeviceInfo denied = device("mlx5_0", true, 0);
  denied.problem = "ibv_open_device failed";
  denied.problem_code = EACCES;
  expect_error(ErrorKind::permission, [&] { choose({denied}, "auto"); });
  expect_error(ErrorKind::permission, [&] { choose({denied}, "mlx5_0"); });
  EXPECT_EQ(choose({denied, device("mlx5_1", true, 1)}, "auto").index, 1u);
}

// Guards against the hardware's board ids matching the rule for the software NIC.
TEST(DeviceChoice, SoftwareBoardRule) {
  EXPECT_TRUE(is_software_board("BELFRY_SOFTNIC"));
  EXPECT_FALSE(is_software_board("MT_0000000838"));
  EXPECT_FALSE(is_software_board(""));
  EXPECT_FALSE(is_software_board("XBELFRY"));
}

// Guards against requests that are half understood.
TEST(DeviceChoice, RefusesMalformedRequests) {
  for (const char* bad : {"", ":1", "mlx5_0:", "mlx5_0:0", "mlx5_0:256", "mlx5_0:1x"}) {
    expect_error(ErrorKind::bad_argument, [&] { DeviceRequest::parse(bad); });
  }
}

}  // namespace
}  // namespace belfry::host
