#pragma once
/// \file
/// `op` by mini-proxy.

#include "belfry/host/windows.hpp"
#include "belfry/proxy/endpoint.hpp"
#include "bench/op_kernel_path.hpp"

namespace belfry::bench {

/// A proxy endpoint for as long as its arm is measured: no other arm has its workers beside it. Both ranks
/// make one at the same time, and end it after the last exchange.
class ProxyPath final : public OpPath {
 public:
  ProxyPath(const OpEnd& end, const host::Windows& windows, bool crowded, KernelRunner& runner,
            const Clock& clock, std::string arm);

  void puts(std::uint64_t count, PutSamples& samples) override { path_.puts(count, samples); }
  void round_trips(std::uint64_t count, RoundTripSamples& samples) override {
    path_.round_trips(count, samples);
  }
  void echo(std::uint64_t count) override { path_.echo(count); }

 private:
  proxy::Endpoint endpoint_;
  KernelPath<device::proxy::ProxyView> path_;
};

}  // namespace belfry::bench
