/// \file
/// The kernels of `residency` on a GPU.

#include <cstring>

#include "bench/cuda_launcher.cuh"
#include "bench/kernels/residency.hpp"
#include "bench/residency_kernels.hpp"

namespace belfry::bench {
namespace {

struct ResidencyGdaPolicy : device::DefaultPolicy {
  static constexpr device::Sharing sharing = device::Sharing::gpu;
};
using ResidencyGda = device::gda::Channel<ResidencyGdaPolicy>;
using ResidencyProxy = device::proxy::Channel<
    ProxyPolicy<device::proxy::Protocol::shared_tuned, device::proxy::Form::payload_visible>>;

/// \tparam least blocks that are to be resident: the compiler's bound on registers
template <unsigned least, class Kernel>
__global__ void __launch_bounds__(kResidencyThreads, least)
    run_residency(const __grid_constant__ Kernel kernel) {
  kernel();
}

__global__ void fill_floats(float* to, std::uint64_t count) {
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    to[i] = static_cast<float>((i * 2654435761u >> 7) % 4093) / 4096;
}

template <Caller caller>
inline constexpr std::uint32_t kLive = caller == Caller::compute ? kComputeLive : kStreamingLive;

/// What an inlined caller is held to: without, the streaming one would take a few registers more and lose
/// one.
inline constexpr unsigned kInlinedBlocks = 4;

/// A kernel's entry, and how to launch it.
template <Caller caller_, class Talk_, ResidencyShape::Transport transport, Call call, bool waits>
struct Variant {
  using Talk = Talk_;
  using Kernel = ResidencyKernel<caller_, kLive<caller_>, Talk>;
  static constexpr ResidencyShape shape{caller_, transport, call, waits};
  static constexpr unsigned least = call == Call::separate ? blocks_alone(caller_) : kInlinedBlocks;
  static auto entry() { return run_residency<least, Kernel>; }
};

template <Caller caller, class Visit>
void for_each_variant_of(const Visit& visit) {
  using enum ResidencyShape::Transport;
  visit(Variant<caller, NoTalk, none, Call::inlined, false>{});
  visit(Variant<caller, Talk<ResidencyGda, Call::inlined, false>, gda, Call::inlined, false>{});
  visit(Variant<caller, Talk<ResidencyGda, Call::inlined, true>, gda, Call::inlined, true>{});
  visit(Variant<caller, Talk<ResidencyGda, Call::separate, false>, gda, Call::separate, false>{});
  visit(Variant<caller, Talk<ResidencyGda, Call::separate, true>, gda, Call::separate, true>{});
  visit(Variant<caller, Talk<ResidencyProxy, Call::inlined, false>, proxy, Call::inlined, false>{});
  visit(Variant<caller, Talk<ResidencyProxy, Call::inlined, true>, proxy, Call::inlined, true>{});
  visit(Variant<caller, Talk<ResidencyProxy, Call::separate, false>, proxy, Call::separate, false>{});
  visit(Variant<caller, Talk<ResidencyProxy, Call::separate, true>, proxy, Call::separate, true>{});
}

/// Calls `visit` with the variant of this shape.
template <class Visit>
void with_variant(const ResidencyShape& shape, const Visit& visit) {
  const auto match = [&](auto variant) {
    if (variant.shape == shape) visit(variant);
  };
  for_each_variant_of<Caller::compute>(match);
  for_each_variant_of<Caller::streaming>(match);
}

class CudaResidency final : public ResidencyRunner {
 public:
  explicit CudaResidency(int gpu) : gpu_(gpu), launcher_(gpu) {
    check_cuda(cudaEventCreate(&begin_), "a CUDA event");
    check_cuda(cudaEventCreate(&end_), "a CUDA event");
  }
  ~CudaResidency() override {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  CudaResidency(const CudaResidency&) = delete;
  CudaResidency& operator=(const CudaResidency&) = delete;

  ResidencyFootprint footprint(const ResidencyShape& shape) override {
    launcher_.use();
    ResidencyFootprint footprint;
    with_variant(shape, [&](auto variant) {
      cudaFuncAttributes attributes{};
      check_cuda(cudaFuncGetAttributes(&attributes, variant.entry()), "a kernel's attributes");
      footprint.registers = attributes.numRegs;
      footprint.local = attributes.localSizeBytes;
      check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&footprint.blocks_an_sm, variant.entry(),
                                                               kResidencyThreads, 0),
                 "a kernel's occupancy");
    });
    check_cuda(cudaDeviceGetAttribute(&footprint.multiprocessors, cudaDevAttrMultiProcessorCount, gpu_),
               "the GPU's multiprocessors");
    return footprint;
  }

  std::shared_ptr<float> allocate(std::uint64_t floats) override {
    launcher_.use();
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, floats * sizeof(float)), "GPU memory for the streaming caller");
    std::shared_ptr<float> owned(static_cast<float*>(memory), [](float* at) { cudaFree(at); });
    fill_floats<<<1024, 256, 0, launcher_.stream()>>>(owned.get(), floats);
    check_cuda(cudaStreamSynchronize(launcher_.stream()), "filling GPU memory");
    return owned;
  }
  std::shared_ptr<std::uint32_t> allocate_count() override {
    return std::static_pointer_cast<std::uint32_t>(launcher_.allocate(sizeof(std::uint32_t)));
  }
  void read(float* to, const float* from, std::uint64_t floats) override {
    launcher_.use();
    check_cuda(cudaMemcpyAsync(to, from, floats * sizeof(float), cudaMemcpyDeviceToHost, launcher_.stream()),
               "a copy from the GPU");
    check_cuda(cudaStreamSynchronize(launcher_.stream()), "a copy from the GPU");
  }

  double run(const ResidencyShape& shape, std::uint32_t blocks, const ResidencyWork& work,
             const std::optional<GdaTalk>& gda, const std::optional<ProxyTalk>& proxy) override {
    launcher_.use();
    float milliseconds = 0;
    with_variant(shape, [&](auto variant) {
      using Variant = decltype(variant);
      typename Variant::Kernel kernel;
      kernel.work = work;
      if constexpr (Variant::shape.transport == ResidencyShape::Transport::gda)
        static_cast<GdaTalk&>(kernel.talk) = gda.value();
      if constexpr (Variant::shape.transport == ResidencyShape::Transport::proxy)
        static_cast<ProxyTalk&>(kernel.talk) = proxy.value();
      const cudaStream_t stream = launcher_.stream();
      check_cuda(cudaEventRecord(begin_, stream), "a CUDA event");
      variant.entry()<<<blocks, kResidencyThreads, 0, stream>>>(kernel);
      check_cuda(cudaGetLastError(), "launching a kernel");
      check_cuda(cudaEventRecord(end_, stream), "a CUDA event");
      check_cuda(cudaStreamSynchronize(stream), "a kernel");
      check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "a kernel's time");
    });
    return static_cast<double>(milliseconds) * 1e3;
  }

  void knock(const GdaTalk& talk) override { knock_by<ResidencyGda>(talk); }
  void knock(const ProxyTalk& talk) override { knock_by<ResidencyProxy>(talk); }

 private:
  template <class Channel>
  void knock_by(const TalkOf<typename Channel::View>& talk) {
    launcher_.use();
    run_kernel<<<1, 1, 0, launcher_.stream()>>>(KnockKernel<Channel>{talk});
    check_cuda(cudaGetLastError(), "launching a kernel");
    check_cuda(cudaStreamSynchronize(launcher_.stream()), "a kernel");
  }

  int gpu_;
  CudaLauncher launcher_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

std::unique_ptr<ResidencyRunner> make_residency_runner(int gpu) {
  return std::make_unique<CudaResidency>(gpu);
}

}  // namespace belfry::bench
