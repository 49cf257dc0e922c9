#pragma once
/// \file
/// The tables of queues and keys as the kernel reads them.

#include "softnic/cuda/engine_types.hpp"
#include "softnic/firmware/control.hpp"

namespace belfry::softnic::cuda {

// Raw, for constant memory takes no initialisers.
__constant__ uint4 constant_queues[kConstantQueues * sizeof(GpuQueuePair) / sizeof(uint4)];
__constant__ uint4 constant_keys[kConstantKeys * sizeof(MkeyEntry) / sizeof(uint4)];
static_assert(sizeof(GpuQueuePair) % sizeof(uint4) == 0 && sizeof(MkeyEntry) % sizeof(uint4) == 0);

/// \tparam constant whether all of them are in constant memory
template <bool constant>
struct Tables {
  const EngineParameters& p;

  __device__ const GpuQueuePair& queue(std::uint32_t slot) const {
    if constexpr (constant) return reinterpret_cast<const GpuQueuePair*>(constant_queues)[slot];
    return p.queues[slot];
  }
  __device__ const MkeyEntry& key(std::uint32_t row) const {
    if constexpr (constant) return reinterpret_cast<const MkeyEntry*>(constant_keys)[row];
    return p.keys[row];
  }

  struct Found {
    KeyFault fault = KeyFault::none;
    unsigned char* memory = nullptr;
    bool near = true;      ///< memory of this GPU
    bool relaxed = false;  ///< writes there may pass each other
  };
  __device__ Found find(std::uint32_t number, std::uint32_t pd, std::uint64_t address, std::uint64_t bytes,
                        std::uint32_t rights) const {
    Found found;
    const std::uint32_t row = number >> 8;
    if (row >= p.key_rows) {
      found.fault = KeyFault::no_such_key;
      return found;
    }
    const MkeyEntry& entry = key(row);
    found.fault = check_entry(entry, number, pd, address, bytes, rights, &found.memory);
    found.near = entry.near;
    found.relaxed = (entry.access & kAccessRelaxedOrdering) != 0;
    return found;
  }
};

}  // namespace belfry::softnic::cuda
