#pragma once
/// \file
/// The engine that executes the send queues which lie in GPU memory, as the NIC uses it. It lives in
/// libbelfry-softnic-cuda.so, which is loaded when a program that uses CUDA first registers memory; nothing
/// here knows of CUDA. Calls other than reach() come from one thread (GpuDriver's), and never with the NIC's
/// lock held.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "softnic/firmware/keys.hpp"
#include "softnic/gpu/gpu_tables.hpp"

namespace belfry::softnic {

struct GpuEngineOptions {
  int gpu = 0;
  unsigned blocks = 1;     ///< of threads, at least; more where the queues ask for more
  unsigned warps = 8;      ///< a block
  unsigned idle_us = 200;  ///< the engine leaves the GPU after so long without work
};

enum class Pinned : std::uint8_t {
  ours,     ///< by this call
  theirs,   ///< somebody else had done it
  refused,  ///< the GPU cannot reach it; error() says why
};

class GpuEngine {
 public:
  virtual ~GpuEngine() = default;

  /// Makes the memory of another GPU reachable for the engine's. Any thread.
  /// \return false where the driver refuses it, and why in `error`
  virtual bool reach(MemoryOwner gpu, std::string& error) = 0;

  /// Makes host memory reachable, for all GPUs.
  virtual Pinned pin(const HostRange& range) = 0;
  virtual void unpin(const HostRange& range) = 0;

  /// New tables. \pre !running()
  virtual bool update(std::span<const GpuQueuePair> queues, std::span<const MkeyEntry> keys,
                      std::uint32_t completion_queues) = 0;
  /// Starts a completion queue's producer index at 0. \pre !running()
  virtual bool reset_completions(std::uint32_t slot) = 0;

  /// Starts the kernel. \pre !running()
  virtual bool launch() = 0;
  /// Whether the kernel has not ended yet.
  virtual bool running() = 0;
  /// Asks the kernel to end when nothing is left to do.
  virtual bool stop() = 0;

  /// Changes whenever a queue fails; any time.
  virtual std::uint32_t attention() const = 0;
  /// \pre !running(), but for `failed` and `overrun`
  virtual GpuProgress& progress(std::uint32_t slot) = 0;

  virtual std::string error() const = 0;  ///< the last failure of CUDA
};

// What the library exports, with C linkage.

/// \return as GpuLibrary::owner_of()
using OwnerOfMemory = MemoryOwner (*)(const void* address, std::size_t bytes);
inline constexpr const char* kOwnerOfMemory = "belfry_softnic_owner_of_memory";
/// \return null where there is no such GPU, with the reason in `error`
using MakeGpuEngine = GpuEngine* (*)(const GpuEngineOptions& options, char* error, std::size_t error_bytes);
inline constexpr const char* kMakeGpuEngine = "belfry_softnic_make_gpu_engine";

}  // namespace belfry::softnic
