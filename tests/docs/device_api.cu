/// \file
/// The same for a GPU: compiled, not run.

#include "docs/device_api.hpp"

namespace belfry::docs {

__global__ void on_gpu(Kernel<Endpoint> kernel, device::QueueMap map, Place a, Place b, Outcome* outcomes) {
  kernel();
  constexpr port::Timeout kTimeout = gda::kDefaultTimeout;
  const Endpoint endpoint(kernel.view);
  auto channel = my_channel(endpoint, 1, map);
  outcomes[0] = batch(channel, a, b, 4, 64, kTimeout);
  if (counter(endpoint, 1, a, b, kTimeout)) return;
  const Operation put = channel.put(Thread{}, a, b, 64);
  outcomes[1] = overlap(
      channel, put, [] { return true; }, kTimeout);
  if (is_my_fault(put, outcomes[1])) return;
  outcomes[2] = staged(channel, kernel.view, 1, a, b, 64, a, kTimeout);
}

}  // namespace belfry::docs
