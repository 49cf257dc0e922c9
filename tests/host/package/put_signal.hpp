#pragma once
// Two PEs in one process: PE 0 puts a payload with a signal, PE 1 waits for it and answers. The kernel and
// its setup, for CPU lanes and for a GPU. Written against belfry's public headers only.

#include <cstdint>

#include "belfry/device/gda.hpp"

namespace consumer {

namespace device = belfry::device;

inline constexpr std::uint64_t kWords = 512;
inline constexpr std::uint32_t kPayload = 0, kSignals = 1;

struct Policy : device::DefaultPolicy {};
using Gda = device::gda::Endpoint<Policy>;

/// Memory that the kernel and the host reach.
struct Result {
  device::Status status = device::Status::timed_out;  ///< the first that is not done
  std::uint64_t wrong = 0;                            ///< words that differ
};

struct PutSignal {
  device::EndpointView view;
  Result* result;

  BELFRY_FN void operator()() const {
    const Gda gda(view);
    const std::uint32_t peer = 1 - gda.pe();
    auto channel = gda.channel(peer);
    auto* words = reinterpret_cast<std::uint64_t*>(view.windows[kPayload].address);
    if (gda.pe() == 0) {
      for (std::uint64_t i = 0; i < kWords; ++i) words[i] = i * i + 1;
      const auto op = channel.put_signal(device::Thread{}, {kPayload, 0}, {kPayload, 0}, kWords * 8,
                                         {{kSignals, 0}, 1, device::SignalOperation::add});
      result->status = channel.wait(device::Thread{}, op).status;
      if (result->status == device::Status::done) result->status = wait(gda);
    } else {
      result->status = wait(gda);
      if (result->status != device::Status::done) return;
      for (std::uint64_t i = 0; i < kWords; ++i) result->wrong += words[i] != i * i + 1;
      result->status =
          channel.wait(device::Thread{}, channel.signal(device::Thread{}, {{kSignals, 0}})).status;
    }
  }

 private:
  BELFRY_FN static device::Status wait(const Gda& gda) {
    return gda.wait_signal(device::Thread{}, {kSignals, 0}, device::Compare::greater_equal, 1,
                           belfry::port::Timeout::seconds(10));
  }
};

}  // namespace consumer
