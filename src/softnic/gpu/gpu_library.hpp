#pragma once
/// \file
/// Loading the GPU engine's library.

#include <memory>
#include <string>

#include "softnic/gpu/gpu_engine.hpp"

namespace belfry::softnic {

/// Whether this process uses CUDA: without its driver library no address can be a GPU's.
bool cuda_is_loaded();

/// Loads libbelfry-softnic-cuda.so from beside this library, or from where the loader finds it, and makes an
/// engine. \return null where that fails, and why in `error`
std::unique_ptr<GpuEngine> load_gpu_engine(const GpuEngineOptions& options, std::string& error);

}  // namespace belfry::softnic
