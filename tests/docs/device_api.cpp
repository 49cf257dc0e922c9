/// \file
/// Compiles what docs/device-api.md shows, for policies that differ, and the setup that goes with it.

#include "docs/device_api.hpp"

#include "belfry/host/device_endpoint.hpp"
#include "belfry/host/environment.hpp"
#include "belfry/host/symmetric_heap.hpp"
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
  options.meet(device::requirements_of<SharedPolicy>());
  const host::DeviceEndpoint endpoint(bootstrap, options);
  endpoint.admit(device::requirements_of<SharedPolicy>());
  // [queues]
  // [launch]
  lanes::LaunchOptions how;
  how.name = "my_kernel";
  lanes::launch({4, 64}, how, Kernel<Endpoint>{endpoint.view()});
  // [launch]
}

device::EndpointView set_up(host::Bootstrap& bootstrap, const host::Environment& environment,
                            std::uint32_t blocks, const device::Requirements& requirements) {
  // [windows]
  host::DeviceEndpointOptions options = host::DeviceEndpointOptions::from(environment);
  options.windows.push_back({.bytes = 64 << 20});  // window 0: payload
  options.windows.push_back({.bytes = 4096});      // window 1: signals
  options.queues_a_peer = device::QueueMap::per_block(blocks).queues();
  const host::DeviceEndpoint endpoint(bootstrap, options);

  host::SymmetricHeap heap(endpoint.windows(), 0);
  const device::Place tokens = heap.allocate(1 << 20);  // the same offset on every PE

  endpoint.admit(requirements);                       // of the policy: throws, or all is met
  const device::EndpointView view = endpoint.view();  // a kernel's parameter
  // [windows]
  static_cast<void>(tokens);
  return view;
}

}  // namespace belfry::docs
