#pragma once
/// \file
/// Copies of one GPU's memory for queues in host memory: by calls of CUDA's, and by a kernel that stays on
/// the GPU for as long as there is something to copy. Both live in libbelfry-softnic-cuda.so, and nothing
/// here knows of CUDA. One call at a time, beside all that engines do, and never with the NIC's lock held.

#include <cstddef>
#include <string>

#include "softnic/gpu/copy_ring.hpp"

namespace belfry::softnic {

/// Pinned host memory through which everything is copied.
inline constexpr std::size_t kGpuStagingBytes = 1 << 20;

/// A call of CUDA's waits while another thread frees memory, which waits for all kernels.
class GpuCopier {
 public:
  virtual ~GpuCopier() = default;

  /// kGpuStagingBytes, the same for all copiers and for as long as one lives.
  virtual unsigned char* staging() = 0;

  // CUDA checks the range on the GPU, for memory that is freed while it is registered: false then, and
  // error() says why.

  /// From staging memory to the GPU's. On return kernels that run see it.
  virtual bool to_gpu(void* to, const void* staged, std::size_t bytes) = 0;
  virtual bool from_gpu(void* staged, const void* from, std::size_t bytes) = 0;

  /// Whether the range is memory of this GPU now. It waits for nobody.
  virtual bool holds(const void* address, std::size_t bytes) = 0;

  virtual std::string error() const = 0;
};

/// The kernel that serves a ring (copy_serving.hpp).
class GpuCopierKernel {
 public:
  virtual ~GpuCopierKernel() = default;

  virtual CopyRing& ring() = 0;

  /// Starts the kernel. It looks at the ring when the GPU has room for it, and has said so by then.
  /// \param launch without its ring \pre is_over()
  virtual bool launch(const CopierLaunch& launch) = 0;
  /// Whether nothing is left of the last launch, also where it failed.
  virtual bool is_over() = 0;

  virtual std::string error() const = 0;
};

// What the library exports, with C linkage.

/// \return null where there is no such GPU, with the reason in `error`
using MakeGpuCopier = GpuCopier* (*)(int gpu, char* error, std::size_t error_bytes);
inline constexpr const char* kMakeGpuCopier = "belfry_softnic_make_gpu_copier";
using MakeGpuCopierKernel = GpuCopierKernel* (*)(int gpu, char* error, std::size_t error_bytes);
inline constexpr const char* kMakeGpuCopierKernel = "belfry_softnic_make_gpu_copier_kernel";

}  // namespace belfry::softnic
