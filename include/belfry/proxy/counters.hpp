#pragma once
/// \file
/// Where mini-proxy counts completions for device code, and who writes there.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace belfry::proxy {

enum class CounterPath : std::uint8_t {
  automatic,  ///< gdrcopy, else nic, where counter memory is named and each is possible; else host
  host,       ///< host memory, written by the worker: device code polls across PCIe
  gdrcopy,    ///< the counter memory, written by the worker through a mapping of GDRCopy's
  nic,        ///< the counter memory, written by the NIC itself: an RDMA WRITE from this PE to itself
};

/// "host", "gdrcopy"
std::string to_string(CounterPath path);

/// Makes memory of a GPU reachable for this host's CPUs.
class CpuMapper {
 public:
  virtual ~CpuMapper() = default;
  /// \param address of the GPU's memory
  /// \return where a CPU has it, for as long as the pointer lives. Its stores may be combined.
  /// Throws host::Error (unsupported) with reason and remedy where it cannot be mapped.
  virtual std::shared_ptr<void> map(void* address, std::size_t bytes) = 0;
};

/// GDRCopy, from libgdrapi.so.2 as it is found when map() is called first.
std::shared_ptr<CpuMapper> gdrcopy_mapper();

}  // namespace belfry::proxy
