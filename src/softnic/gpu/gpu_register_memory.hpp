#pragma once
/// \file
/// Doorbell registers in the memory of a GPU (GpuDoorbells::gpu), as the host reaches them. It lives in
/// libbelfry-softnic-cuda.so, and nothing here knows of CUDA.

#include <cstddef>
#include <cstdint>
#include <string>

#include "softnic/firmware/keys.hpp"

namespace belfry::softnic {

inline constexpr std::uint32_t kGpuPageRegisters = 4096;
/// From one register to the next: each is a sector of the GPU's L2.
inline constexpr std::uint32_t kGpuRegisterBytes = 32;

/// One call at a time, beside all that engines and kernels do; never with the NIC's lock held.
class GpuRegisterMemory {
 public:
  virtual ~GpuRegisterMemory() = default;

  /// kGpuPageRegisters of them, kGpuRegisterBytes apart; for kernels only.
  virtual unsigned char* registers() = 0;
  /// Lets the kernels of another GPU ring there. \return false: the driver refuses it, and error() says why
  virtual bool open_to(MemoryOwner gpu) = 0;

  /// Copies the first `count` registers. \return false where CUDA fails, and error() says why
  virtual bool read(std::uint64_t* values, std::uint32_t count) = 0;
  virtual bool write(std::uint32_t index, std::uint64_t value) = 0;

  virtual std::string error() const = 0;
};

/// What the library exports, with C linkage. \return null where there is no such GPU, with the reason in
/// `error`
using MakeGpuRegisterMemory = GpuRegisterMemory* (*)(int gpu, char* error, std::size_t error_bytes);
inline constexpr const char* kMakeGpuRegisterMemory = "belfry_softnic_make_gpu_register_memory";

}  // namespace belfry::softnic
