#pragma once
/// \file
/// What libbelfry-softnic.so offers to whoever hands doorbell registers to kernels on a GPU: belfry's
/// register mapper looks for it before it asks the GPU's driver for the UAR page. With no software NIC in the
/// process nobody has these names.

#include <cstddef>
#include <cstdint>

namespace belfry::wire {

// With C linkage, in a process that runs under the software NIC.

/// \param doorbell where the process has the register \param gpu whose kernels ring there, by CUDA's number
/// \return where they ring in place of it, until it is handed back. Null with an empty `error`: there; null
/// with a reason in it: nowhere
using GpuRegisterOf = std::uint64_t* (*)(const void* doorbell, int gpu, char* error, std::size_t error_bytes);
inline constexpr const char* kGpuRegisterOf = "belfry_softnic_gpu_register_of";

using ReturnGpuRegister = void (*)(std::uint64_t* gpu_register);
inline constexpr const char* kReturnGpuRegister = "belfry_softnic_return_gpu_register";

}  // namespace belfry::wire
