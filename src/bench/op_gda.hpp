#pragma once
/// \file
/// mini-gda's queues for `op`.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "belfry/host/device_endpoint.hpp"
#include "bench/clock.hpp"
#include "bench/kernel_runner.hpp"
#include "bench/op_end.hpp"
#include "bench/op_kernel_path.hpp"

namespace belfry::bench {

/// Device endpoints beside an OpEnd, of each kind that the arms need.
class GdaEnd {
 public:
  /// Both ranks make one with the same arms. Throws host::Error.
  /// \param arms of for_each_op_arm(), without those that a CPU assists; others are passed over
  GdaEnd(host::Bootstrap& group, const host::Windows& windows, const std::vector<std::string>& arms);

  /// The endpoint whose queues are of the arm's kind. Throws std::out_of_range for an arm it was not made
  /// for.
  const host::DeviceEndpoint& endpoint(const std::string& arm) const;

 private:
  std::vector<std::unique_ptr<host::DeviceEndpoint>> endpoints_;
  std::map<std::string, const host::DeviceEndpoint*> by_arm_;
};

/// Whether the arm is one of mini-gda's whose doorbells a CPU forwards.
bool is_assisted(const std::string& arm);

/// Has a CPU thread forward the doorbells of endpoints to be made.
/// \param crowded kernels, forwarders and NIC threads are more than the cores
void forward_by_cpu(host::DeviceEndpointOptions& options, bool crowded);

/// An endpoint with a forwarding thread for as long as its arm is measured: no other arm has the thread
/// beside it. Both ranks make one at the same time, and end it after the last exchange.
class AssistedPath final : public OpPath {
 public:
  AssistedPath(const OpEnd& end, const host::Windows& windows, bool crowded, KernelRunner& runner,
               const Clock& clock, const std::string& arm);

  void puts(std::uint64_t count, PutSamples& samples) override { path_.puts(count, samples); }
  void round_trips(std::uint64_t count, RoundTripSamples& samples) override {
    path_.round_trips(count, samples);
  }
  void echo(std::uint64_t count) override { path_.echo(count); }

 private:
  host::DeviceEndpoint endpoint_;
  KernelPath<device::EndpointView> path_;
};

// What a put is made of, each alone.
inline constexpr const char* kDoorbellArm = "doorbell";
inline constexpr const char* kFenceArm = "fence";
inline bool is_bare(const std::string& arm) { return arm == kDoorbellArm || arm == kFenceArm; }

/// `count` bare doorbells, or bare stores with a fence behind, of the endpoint, us each.
std::vector<double> measure_bare(const std::string& arm, const OpEnd& end, const device::EndpointView& view,
                                 KernelRunner& runner, const Clock& clock, std::uint64_t count);

}  // namespace belfry::bench
