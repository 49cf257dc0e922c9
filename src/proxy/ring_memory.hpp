#pragma once
/// \file
/// Rings as setup makes them: what lies in host memory, empty, and the structs that point to it.

#include <memory>
#include <vector>

#include "belfry/host/queue_memory.hpp"
#include "proxy/ring_reader.hpp"

namespace belfry::proxy {

class RingMemory {
 public:
  /// \param slots in each ring, a power of two up to 32768
  /// \param first index that the rings start at, a multiple of `slots`
  /// \param provider of host memory that device code reaches; null: plain host memory
  /// Throws host::Error (system) where there is no memory.
  RingMemory(std::uint32_t rings, std::uint32_t slots, std::uint64_t first,
             std::shared_ptr<host::QueueMemory> provider = nullptr);

  /// What device code takes, but for `state`, whose place is the caller's choice.
  const std::vector<device::proxy::Ring>& rings() const { return rings_; }
  /// How each ring's state begins.
  device::proxy::RingState first_state() const { return {first_, first_, {}}; }
  device::proxy::WorkerWords* words(std::uint32_t ring) const { return words_[ring]; }
  RingReader reader(std::uint32_t ring) const {
    return {rings_[ring].slots, rings_[ring].log_slots, taken_[ring], first_};
  }

 private:
  std::uint64_t first_;
  std::shared_ptr<void> memory_;
  std::vector<device::proxy::Ring> rings_;
  std::vector<device::proxy::WorkerWords*> words_;
  std::vector<std::uint64_t*> taken_;
};

}  // namespace belfry::proxy
