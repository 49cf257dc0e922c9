#pragma once
/// \file
/// `op` by kernels, on the window that the verbs arms use.

#include <string>

#include "belfry/host/windows.hpp"
#include "bench/clock.hpp"
#include "bench/kernel_runner.hpp"
#include "bench/op_end.hpp"

namespace belfry::bench {

/// The end's memory as window 0. Both ranks call it. Throws host::Error.
/// \param kind what that memory is to the kernels
host::Windows kernel_windows(const OpEnd& end, device::MemoryKind kind = device::MemoryKind::own);

/// One end's kernels. \tparam View device::EndpointView or device::proxy::ProxyView
template <class View>
class KernelPath final : public OpPath {
 public:
  /// \param view of an endpoint whose window 0 is laid out as op_path.hpp says, with the queues which the arm
  ///        needs; it outlives this
  /// \param puts, round_trips what runs the kernels of each of the two
  KernelPath(const View& view, int peer, std::uint64_t seed, KernelRunner& puts, KernelRunner& round_trips,
             const Clock& clock, std::string arm);

  void puts(std::uint64_t count, PutSamples& samples) override;
  void round_trips(std::uint64_t count, RoundTripSamples& samples) override;
  void echo(std::uint64_t count) override;

 private:
  FlagJobOf<View> flag_job(std::uint64_t count, KernelEnd* end) const;

  View view_;
  KernelRunner& puts_;
  KernelRunner& round_trips_;
  const Clock& clock_;
  std::string arm_;
  std::uint32_t peer_;
  std::uint64_t seed_;
};

extern template class KernelPath<device::EndpointView>;
extern template class KernelPath<device::proxy::ProxyView>;

}  // namespace belfry::bench
