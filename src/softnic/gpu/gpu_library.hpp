#pragma once
/// \file
/// Loading the GPU engine's library.

#include <memory>
#include <string>

#include "softnic/gpu/gpu_copier.hpp"
#include "softnic/gpu/gpu_engine.hpp"
#include "softnic/gpu/gpu_register_memory.hpp"

namespace belfry::softnic {

/// What the NIC asks of CUDA beside its engines. Any thread, and never with the NIC's lock held.
class GpuLibrary {
 public:
  virtual ~GpuLibrary() = default;

  /// The GPU whose memory all of the range is, or kHostMemory.
  virtual MemoryOwner owner_of(const void* address, std::size_t bytes) = 0;

  /// \return null where that fails, and why in `error`
  virtual std::unique_ptr<GpuEngine> make_engine(const GpuEngineOptions& options, std::string& error) = 0;
  virtual std::unique_ptr<GpuCopier> make_copier(MemoryOwner gpu, std::string& error) = 0;
  virtual std::unique_ptr<GpuCopierKernel> make_copier_kernel(MemoryOwner gpu, std::string& error) = 0;
  virtual std::unique_ptr<GpuRegisterMemory> make_register_memory(MemoryOwner gpu, std::string& error) = 0;
};

/// Whether this process uses CUDA: without its driver library no address can be a GPU's.
bool cuda_is_loaded();

/// Loads libbelfry-softnic-cuda.so from beside this library, or from where the loader finds it.
/// \return null where that fails, and why in `error`
std::unique_ptr<GpuLibrary> load_gpu_library(std::string& error);

}  // namespace belfry::softnic
