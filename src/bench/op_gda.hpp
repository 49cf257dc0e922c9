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

namespace belfry::bench {

/// Device endpoints beside an OpEnd, of each kind that the arms need.
class GdaEnd {
 public:
  /// Both ranks make one with the same arms. Throws host::Error.
  /// \param arms of for_each_op_arm(); others are passed over
  GdaEnd(host::Bootstrap& group, const host::Windows& windows, const std::vector<std::string>& arms);

  /// The endpoint whose queues are of the arm's kind. Throws std::out_of_range for an arm it was not made
  /// for.
  const host::DeviceEndpoint& endpoint(const std::string& arm) const;

 private:
  std::vector<std::unique_ptr<host::DeviceEndpoint>> endpoints_;
  std::map<std::string, const host::DeviceEndpoint*> by_arm_;
};

/// `count` bare doorbells of the arm's endpoint, us each.
std::vector<double> measure_doorbells(const OpEnd& end, const device::EndpointView& view,
                                      KernelRunner& runner, const Clock& clock, std::uint64_t count);

}  // namespace belfry::bench
