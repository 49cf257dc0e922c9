/// \file
/// Compiles what docs/mini-proxy.md shows.

#include <cstdio>

#include "belfry/device/proxy.hpp"
#include "belfry/host/device_endpoint.hpp"
#include "belfry/lanes/launch.hpp"
#include "belfry/proxy/endpoint.hpp"

namespace belfry::docs {

namespace {

// [policy]
struct ManyProducers : device::proxy::DefaultProxyPolicy {
  static constexpr auto protocol = device::proxy::Protocol::shared_tuned;
  static constexpr auto form = device::proxy::Form::payload_visible;
};
using Endpoint = device::proxy::Endpoint<ManyProducers>;
// [policy]

// [kernel]
struct Send {
  device::proxy::ProxyView view;
  std::uint32_t peer;
  std::uint64_t bytes;
  device::Outcome* outcome;

  BELFRY_FN void operator()() const {
    const Endpoint endpoint(view);
    auto channel = endpoint.channel(peer, port::block_index());  // a ring for each block
    const auto op = channel.put_signal(device::Thread{}, {0, 0}, {0, 0}, bytes, {{1, 0}});
    *outcome = channel.wait(device::Thread{}, op, port::Timeout::seconds(1));
  }
};
// [kernel]

}  // namespace

void run_by_proxy(host::Bootstrap& bootstrap, const host::Windows& windows, std::uint32_t blocks,
                  device::Outcome& outcome) {
  // [setup]
  proxy::EndpointOptions options;
  options.rings = blocks;
  options.workers = 2;  // of four rings, one has 0 and 2, the other 1 and 3
  options.idle.kind = proxy::IdlePolicy::Kind::sleep;
  const proxy::Endpoint endpoint(bootstrap, windows, options);
  for (const std::string& line : endpoint.decisions()) std::puts(line.c_str());
  lanes::launch({blocks, 1}, {}, Send{endpoint.view(), 1, 4096, &outcome});
  // [setup]
}

host::DeviceEndpoint assisted(host::Bootstrap& bootstrap, std::shared_ptr<host::RegisterMapper> mapper) {
  // [cpu-assisted]
  host::DeviceEndpointOptions options;
  options.windows = {{.bytes = 1 << 20}};
  options.placement.registers = std::move(mapper);  // how a GPU reaches the NIC's registers
  options.doorbell_path = host::DoorbellPath::automatic;
  options.forwarder.idle.kind = host::IdlePolicy::Kind::sleep;
  host::DeviceEndpoint endpoint(bootstrap, options);
  if (endpoint.doorbell_path() == host::DoorbellPath::cpu_assisted)
    for (const std::string& line : endpoint.decisions()) std::puts(line.c_str());
  // [cpu-assisted]
  return endpoint;
}

}  // namespace belfry::docs
