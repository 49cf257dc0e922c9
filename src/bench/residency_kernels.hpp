#pragma once
/// \file
/// The kernels of the experiment `residency`, as its host part starts them.

#include <memory>
#include <optional>

#include "bench/kernels/residency_jobs.hpp"

namespace belfry::bench {

inline constexpr std::uint32_t kResidencyThreads = 256;  ///< a block
inline constexpr std::uint32_t kComputeLive = 8;
inline constexpr std::uint32_t kStreamingLive = 16;

/// Blocks of the callers alone that a multiprocessor of 65536 registers holds. The compiler keeps a kernel of
/// Call::separate to as many, and the code that sends spills what it needs beyond that.
BELFRY_FN constexpr unsigned blocks_alone(Caller caller) { return caller == Caller::compute ? 8 : 6; }

using GdaTalk = TalkOf<device::EndpointView>;
using ProxyTalk = TalkOf<device::proxy::ProxyView>;

/// What is compiled into a kernel.
struct ResidencyShape {
  enum class Transport : std::uint8_t { none, gda, proxy };
  Caller caller = Caller::compute;
  Transport transport = Transport::none;
  Call call = Call::inlined;
  bool waits = false;
  bool operator==(const ResidencyShape&) const = default;
};

struct ResidencyFootprint {
  int registers = 0;        ///< a thread
  std::uint64_t local = 0;  ///< B of local memory a thread: stack and spills
  int blocks_an_sm = 0;     ///< resident at the same time
  int multiprocessors = 0;
};

class ResidencyRunner {
 public:
  virtual ~ResidencyRunner() = default;
  virtual ResidencyFootprint footprint(const ResidencyShape& shape) = 0;
  /// GPU memory: floats of different values, for ResidencyWork::input and output.
  virtual std::shared_ptr<float> allocate(std::uint64_t floats) = 0;
  /// A word that kernels count in and the host reads.
  virtual std::shared_ptr<std::uint32_t> allocate_count() = 0;
  virtual void read(float* to, const float* from, std::uint64_t floats) = 0;

  /// Time of one launch, us. Either talk is that of the shape's transport, or there is none.
  virtual double run(const ResidencyShape& shape, std::uint32_t blocks, const ResidencyWork& work,
                     const std::optional<GdaTalk>& gda, const std::optional<ProxyTalk>& proxy) = 0;
  /// KnockKernel on the queues of either.
  virtual void knock(const GdaTalk& talk) = 0;
  virtual void knock(const ProxyTalk& talk) = 0;
};

/// Throws std::invalid_argument in a build without CUDA, std::runtime_error where there is no such GPU.
std::unique_ptr<ResidencyRunner> make_residency_runner(int gpu);

}  // namespace belfry::bench
