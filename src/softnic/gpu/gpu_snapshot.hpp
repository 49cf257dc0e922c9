#pragma once
/// \file
/// From the NIC's objects to the tables of its GPU engine.

#include <set>
#include <vector>

#include "softnic/firmware/keys.hpp"
#include "softnic/gpu/gpu_tables.hpp"

namespace belfry::softnic {

class NicCore;

/// Registers that wake the engine.
struct GpuWatch {
  const std::uint64_t* doorbells[kGpuRegisters] = {};
  bool on_gpu[kGpuRegisters] = {};  ///< it lies in GPU memory
  std::uint32_t slot = 0;           ///< of a queue that is rung there
};

struct GpuTables {
  std::vector<GpuQueuePair> queues;           ///< by slot
  std::vector<MkeyEntry> keys;                ///< by row
  std::vector<std::uint64_t> cq_generations;  ///< by slot; 0: none
  std::vector<HostRange> host_ranges;         ///< what the engine touches of host memory
  std::vector<GpuWatch> watched;
};

/// Of the engine on `gpu`: slots of the others' queues are there, and idle. \pre the NIC's lock is held
GpuTables take_gpu_snapshot(NicCore& core, MemoryOwner gpu);

/// Makes keys useless whose memory could not be pinned.
void drop_keys(GpuTables& tables, const std::vector<HostRange>& refused);
/// The same of keys to memory of another GPU that is not among those within reach.
void drop_far_keys(GpuTables& tables, const std::set<MemoryOwner>& reachable);

}  // namespace belfry::softnic
