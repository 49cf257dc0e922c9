// put_signal.hpp on CPU lanes. Run it as `belfry softnic -- put_signal`, or on a real ConnectX.

#include "belfry/lanes/launch.hpp"
#include "put_signal_host.hpp"

int main() {
  return consumer::run_both([](belfry::host::Bootstrap& bootstrap) {
    return consumer::run(bootstrap, {}, [](const belfry::device::EndpointView& view) {
      consumer::Result result;
      belfry::lanes::launch({1, 1}, {}, consumer::PutSignal{view, &result});
      return result;
    });
  });
}
