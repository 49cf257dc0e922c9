/// \file
/// Compiles what docs/device-api.md shows, for policies that differ, and the setup that goes with it.

#include "docs/device_api.hpp"

#include "belfry/host/device_endpoint.hpp"
#include "belfry/lanes/launch.hpp"

namespace belfry::docs {

template struct Kernel<Endpoint>;
template struct Kernel<gda::Endpoint<>>;
template Outcome batch(gda::Channel<SharedPolicy>&, Place, Place, std::uint32_t, std::uint32_t,
                       port::Timeout);
template bool counter(const Endpoint&, std::uint32_t, Place, Place, port::Timeout);
template Outcome staged(gda::Channel<SharedPolicy>&, const device::EndpointView&, std::uint32_t, Place, Place,
                        std::uint32_t, Place, port::Timeout);
template Outcome staged(gda::Channel<device::DefaultPolicy>&, const device::EndpointView&, std::uint32_t,
                        Place, Place, std::uint32_t, Place, port::Timeout);
template auto my_channel(const Endpoint&, std::uint32_t, device::QueueMap);
Outcome overlap_nothing(gda::Channel<SharedPolicy>& channel, const Operation& put) {
  return overlap(
      channel, put, [] { return false; }, gda::kDefaultTimeout);
}

void run(host::Bootstrap& bootstrap, std::size_t bytes) {
  // [queues]
  const device::QueueMap map = device::QueueMap::per_block(4);
  host::DeviceEndpointOptions options;
  options.windows = {{.bytes = bytes}};
  options.queues_a_peer = map.queues();
  options.doorbell = SharedPolicy::doorbell_mode;
  options.completions = SharedPolicy::completion_layout;
  const host::DeviceEndpoint endpoint(bootstrap, options);
  endpoint.admit(device::requirements_of<SharedPolicy>());
  // [queues]
  // [launch]
  lanes::LaunchOptions how;
  how.name = "my_kernel";
  lanes::launch({4, 64}, how, Kernel<Endpoint>{endpoint.view()});
  // [launch]
}

}  // namespace belfry::docs
