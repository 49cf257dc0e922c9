#pragma once
/// \file
/// Where queues, tables and windows lie: host memory by default, or whatever a caller provides that the
/// driver can pin (GPU memory, for one).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace belfry::host {

class QueueMemory {
 public:
  virtual ~QueueMemory() = default;

  /// `bytes` (a multiple of 4096) at a page-aligned address, zero-filled. It is freed with the last copy
  /// of the pointer. Throws Error.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;

  /// Sets `bytes` bytes of such memory to `value`, and returns once a device would read them so.
  virtual void fill(void* address, std::byte value, std::size_t bytes) = 0;

  /// Copies `bytes` bytes of host memory to such memory, and returns once a device would read them so.
  virtual void write(void* to, const void* from, std::size_t bytes) = 0;

  /// Copies `bytes` bytes of such memory, to which nobody writes, to host memory.
  virtual void read(void* to, const void* from, std::size_t bytes);

  /// The 8 B word at an aligned `address`, while a device may be changing it: never half of a store, and what
  /// that device stored before is seen too.
  virtual std::uint64_t load(const void* address) = 0;

  /// The GPU whose memory it is, by CUDA's number; nothing for the host's.
  virtual std::optional<int> gpu() const { return std::nullopt; }
};

/// Plain host memory, private to each queue.
std::shared_ptr<QueueMemory> host_queue_memory();

}  // namespace belfry::host
