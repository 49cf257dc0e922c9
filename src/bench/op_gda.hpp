#pragma once
/// \file
/// `op` by mini-gda: kernels post, on the window that the verbs arms use.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "belfry/host/device_endpoint.hpp"
#include "bench/clock.hpp"
#include "bench/kernel_runner.hpp"
#include "bench/op_end.hpp"

namespace belfry::bench {

/// Device endpoints beside an OpEnd, of each kind that the arms need.
class GdaEnd {
 public:
  /// Both ranks make one with the same arms. Throws host::Error.
  /// \param arms of for_each_op_arm(); others are passed over
  GdaEnd(const OpEnd& end, const std::vector<std::string>& arms);

  /// The endpoint whose queues are of the arm's kind. Throws std::out_of_range for an arm it was not made
  /// for.
  const host::DeviceEndpoint& endpoint(const std::string& arm) const;

 private:
  std::vector<std::unique_ptr<host::DeviceEndpoint>> endpoints_;
  std::map<std::string, const host::DeviceEndpoint*> by_arm_;
};

class GdaPath final : public OpPath {
 public:
  /// \param puts, round_trips what runs the kernels of each of the two
  GdaPath(const OpEnd& end, const GdaEnd& gda, KernelRunner& puts, KernelRunner& round_trips,
          const Clock& clock, std::string arm);

  void puts(std::uint64_t count, PutSamples& samples) override;
  void round_trips(std::uint64_t count, RoundTripSamples& samples) override;
  void echo(std::uint64_t count) override;

 private:
  FlagJob flag_job(std::uint64_t count, KernelEnd* end) const;

  const host::DeviceEndpoint& endpoint_;
  KernelRunner& puts_;
  KernelRunner& round_trips_;
  const Clock& clock_;
  std::string arm_;
  std::uint32_t peer_;
  std::uint64_t seed_;
};

/// `count` bare doorbells of the arm's endpoint, us each.
std::vector<double> measure_doorbells(const OpEnd& end, const device::EndpointView& view,
                                      KernelRunner& runner, const Clock& clock, std::uint64_t count);

}  // namespace belfry::bench
