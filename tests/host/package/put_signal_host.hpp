#pragma once
// The setup of put_signal.hpp, whatever its kernel runs on.

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "belfry/host/device_endpoint.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "put_signal.hpp"

namespace consumer {

namespace host = belfry::host;

/// \param launch runs a PutSignal of this view to its end. \return whether all went well
template <class Launch>
bool run(host::Bootstrap& bootstrap, host::DeviceEndpointOptions options, const Launch& launch) try {
  options.meet(device::requirements_of<Policy>());
  // Where the tables are the kernel has its memory.
  const auto memory = options.placement.tables.memory;
  options.windows = {{.bytes = kWords * 8, .memory = memory}, {.bytes = 64, .memory = memory}};
  const host::DeviceEndpoint endpoint(bootstrap, options);
  endpoint.admit(device::requirements_of<Policy>());
  const Result result = launch(endpoint.view());
  bootstrap.barrier(host::deadline_after(std::chrono::seconds(10)));
  std::printf("PE %d: %s, %llu of %llu words wrong\n", bootstrap.rank(), device::status_name(result.status),
              static_cast<unsigned long long>(result.wrong), static_cast<unsigned long long>(kWords));
  return result.status == device::Status::done && result.wrong == 0;
} catch (const std::exception& error) {
  std::printf("PE %d: %s\n", bootstrap.rank(), error.what());
  return false;
}

/// \param pe runs one PE. \return the program's exit status
template <class Pe>
int run_both(const Pe& pe) {
  const auto members = host::make_thread_bootstrap(2);
  bool other = false;
  std::thread thread([&] { other = pe(*members[1]); });
  const bool mine = pe(*members[0]);
  thread.join();
  return mine && other ? 0 : 1;
}

}  // namespace consumer
