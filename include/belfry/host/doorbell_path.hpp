#pragma once
/// \file
/// How the doorbells of device code reach the NIC.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "belfry/host/errors.hpp"
#include "belfry/host/idle.hpp"

namespace belfry::host {

enum class DoorbellPath : std::uint8_t {
  automatic,     ///< gpu_rung where device code can reach the NIC's registers, else cpu_assisted
  gpu_rung,      ///< device code stores to the NIC's register
  cpu_assisted,  ///< device code stores to host memory, and a CPU thread forwards
};

/// "gpu-rung"
std::string to_string(DoorbellPath path);

/// Of the CPU thread that forwards.
struct ForwarderOptions {
  IdlePolicy idle;
  bool pin = true;  ///< to a CPU near the NIC, within this process's affinity mask
  /// A heartbeat that stands this long counts as a lost thread to device code that waits. 0: never.
  std::chrono::nanoseconds stall = std::chrono::seconds(5);
};

/// Makes a NIC's doorbell registers reachable for the device code that posts (for a GPU: by registering
/// their page with its driver).
class RegisterMapper {
 public:
  virtual ~RegisterMapper() = default;
  /// \param doorbell where this process has the register
  /// \return where device code has it, for as long as the pointer lives
  /// Throws Error (unsupported) with reason and remedy where it cannot be reached.
  virtual std::shared_ptr<std::uint64_t> map(std::uint64_t* doorbell) = 0;
};

/// What a RegisterMapper throws where the CUDA driver refuses to register a doorbell register's page.
/// \param result of cuMemHostRegister or cudaHostRegister: 800 where the driver does not permit it
Error register_refused(int result);

}  // namespace belfry::host
