#include "bench/op_proxy.hpp"

#include <utility>

#include "belfry/host/environment.hpp"
#include "bench/device_group.hpp"

namespace belfry::bench {

proxy::EndpointOptions proxy_options(bool crowded) {
  proxy::EndpointOptions options;
  options.connection = host::EndpointOptions::from(host::Environment::of_this_process()).connection;
  be_patient(options.connection);
  options.pin = false;
  options.idle.kind = crowded ? proxy::IdlePolicy::Kind::yield : proxy::IdlePolicy::Kind::spin;
  options.idle.spins = 0;
  // A worker that waits for a core is not lost.
  options.stall = std::chrono::seconds(kKernelWaitSeconds);
  return options;
}

ProxyPath::ProxyPath(const OpEnd& end, const host::Windows& windows, bool crowded, KernelRunner& runner,
                     const Clock& clock, std::string arm)
    : endpoint_(end.group(), windows, proxy_options(crowded)),
      path_(end, endpoint_.view(), runner, runner, clock, std::move(arm)) {}

}  // namespace belfry::bench
