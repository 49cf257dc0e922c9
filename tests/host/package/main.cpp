// Uses a format, lanes, the proxy and the host library, and through it rdma-core.

#include <cstdio>

#include "belfry/host/context.hpp"
#include "belfry/host/device_list.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/lanes/launch.hpp"
#include "belfry/port/lane.hpp"
#include "belfry/proxy/counters.hpp"
#include "belfry/version.hpp"
#include "belfry/wire/wqe.hpp"

int main() {
  static_assert(sizeof(belfry::wire::ControlSegment) == 16);
  unsigned votes = 0;
  belfry::lanes::launch({1, 4}, {}, [&votes] {
    const unsigned all = belfry::port::ballot(0b1111, true);
    if (belfry::port::lane_index() == 3) votes = all;
  });
  if (votes != 0b1111) return 3;
  if (belfry::proxy::to_string(belfry::proxy::CounterPath::nic) != "nic") return 4;
  try {
    const belfry::host::DeviceList devices;
    std::printf("belfry %s sees %zu devices\n", belfry::kVersion, devices.size());
    belfry::host::ContextOptions options;
    options.nic = "no_such_device";
    belfry::host::Context::open(options);
  } catch (const belfry::host::Error& error) {
    std::printf("%s\n", error.what());
    return error.kind() == belfry::host::ErrorKind::no_device ? 0 : 1;
  }
  return 2;
}
