#pragma once
/// \file
/// Copies of one GPU's memory for queues in host memory. It lives in libbelfry-softnic-cuda.so, and nothing
/// here knows of CUDA. One call at a time, beside all that engines do.

#include <cstddef>
#include <string>

namespace belfry::softnic {

/// Pinned host memory through which everything is copied.
inline constexpr std::size_t kGpuStagingBytes = 1 << 20;

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

  virtual std::string error() const = 0;
};

/// What the library exports, with C linkage. \return null where there is no such GPU, with the reason in
/// `error`
using MakeGpuCopier = GpuCopier* (*)(int gpu, char* error, std::size_t error_bytes);
inline constexpr const char* kMakeGpuCopier = "belfry_softnic_make_gpu_copier";

}  // namespace belfry::softnic
