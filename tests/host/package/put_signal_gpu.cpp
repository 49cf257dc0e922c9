// put_signal.hpp on a GPU: `CUDA_MODULE_LOADING=EAGER belfry softnic -- put_signal_gpu`, or with a real
// ConnectX.

#include "put_signal_gpu.hpp"

#include "belfry/host/cuda_memory.hpp"
#include "put_signal_host.hpp"

int main() {
  return consumer::run_both([](belfry::host::Bootstrap& bootstrap) {
    belfry::host::DeviceEndpointOptions options;
    try {
      options.placement = belfry::host::place_for_gpu();
    } catch (const std::exception& error) {
      std::printf("PE %d: %s\n", bootstrap.rank(), error.what());
      return false;
    }
    return consumer::run(bootstrap, options, consumer::launch_on_gpu);
  });
}
