// Two PEs in one process, each with device code on CPU lanes: PE 0 puts a payload with a signal, PE 1 waits
// for it and answers. Written against belfry's public headers only; run it as `belfry softnic -- put_signal`,
// or on a real ConnectX.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <thread>

#include "belfry/device/gda.hpp"
#include "belfry/host/device_endpoint.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "belfry/lanes/launch.hpp"

namespace device = belfry::device;
namespace host = belfry::host;

namespace {

constexpr std::uint64_t kWords = 512;
constexpr std::uint32_t kPayload = 0, kSignals = 1;

struct Policy : device::DefaultPolicy {};
using Gda = device::gda::Endpoint<Policy>;

/// What a kernel does; nvcc compiles the same.
struct PutSignal {
  device::EndpointView view;
  device::Status* status;  ///< the first that is not done
  std::uint64_t* wrong;    ///< words that differ

  BELFRY_FN void operator()() const {
    const Gda gda(view);
    const std::uint32_t peer = 1 - gda.pe();
    auto channel = gda.channel(peer);
    auto* words = reinterpret_cast<std::uint64_t*>(view.windows[kPayload].address);
    if (gda.pe() == 0) {
      for (std::uint64_t i = 0; i < kWords; ++i) words[i] = i * i + 1;
      const auto op = channel.put_signal(device::Thread{}, {kPayload, 0}, {kPayload, 0}, kWords * 8,
                                         {{kSignals, 0}, 1, device::SignalOperation::add});
      *status = channel.wait(device::Thread{}, op).status;
      if (*status == device::Status::done) *status = wait(gda);
    } else {
      *status = wait(gda);
      if (*status != device::Status::done) return;
      for (std::uint64_t i = 0; i < kWords; ++i) *wrong += words[i] != i * i + 1;
      *status = channel.wait(device::Thread{}, channel.signal(device::Thread{}, {{kSignals, 0}})).status;
    }
  }

 private:
  BELFRY_FN static device::Status wait(const Gda& gda) {
    return gda.wait_signal(device::Thread{}, {kSignals, 0}, device::Compare::greater_equal, 1,
                           belfry::port::Timeout::seconds(10));
  }
};

/// \return whether all went well
bool run(host::Bootstrap& bootstrap) try {
  host::DeviceEndpointOptions options;
  options.meet(device::requirements_of<Policy>());
  options.windows = {{.bytes = kWords * 8}, {.bytes = 64}};
  const host::DeviceEndpoint endpoint(bootstrap, options);
  endpoint.admit(device::requirements_of<Policy>());
  device::Status status = device::Status::timed_out;
  std::uint64_t wrong = 0;
  belfry::lanes::launch({1, 1}, {}, PutSignal{endpoint.view(), &status, &wrong});
  bootstrap.barrier(host::deadline_after(std::chrono::seconds(10)));
  std::printf("PE %d: %s, %llu of %llu words wrong\n", bootstrap.rank(), device::status_name(status),
              static_cast<unsigned long long>(wrong), static_cast<unsigned long long>(kWords));
  return status == device::Status::done && wrong == 0;
} catch (const std::exception& error) {
  std::printf("PE %d: %s\n", bootstrap.rank(), error.what());
  return false;
}

}  // namespace

int main() {
  const auto members = host::make_thread_bootstrap(2);
  bool other = false;
  std::thread thread([&] { other = run(*members[1]); });
  const bool mine = run(*members[0]);
  thread.join();
  return mine && other ? 0 : 1;
}
