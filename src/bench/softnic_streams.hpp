#pragma once
/// \file
/// What the experiment `softnic` sends through the software NIC: two queue pairs of one thread, made by
/// verbs and as DEVX objects, one end of each the target.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "belfry/host/context.hpp"
#include "belfry/host/devx_queue.hpp"
#include "belfry/host/memory.hpp"
#include "belfry/host/verbs_queue.hpp"
#include "bench/clock.hpp"
#include "bench/target.hpp"
#include "bench/wait.hpp"

namespace belfry::bench {

inline constexpr std::uint32_t kBatch = 16;        ///< WQEs a doorbell
inline constexpr std::uint32_t kSignalEvery = 64;  ///< WQEs a CQE
inline constexpr std::uint32_t kStreamDepth = 1024;
inline constexpr std::size_t kCopyBytes = 65536;
inline constexpr std::size_t kCopySlots = 32;
inline constexpr std::uint32_t kCopiesInFlight = 16;

struct Latencies {
  std::vector<double> put_completion;  ///< us
  bool verified = false;
};
struct Stream {
  double seconds = 0;
  bool verified = false;
};
struct Copies {
  double nic_seconds = 0;
  double memcpy_seconds = 0;
  bool verified = false;
};

class SoftnicStreams {
 public:
  /// Throws host::Error.
  SoftnicStreams(const host::Context& context, std::uint64_t seed);

  /// Bytes of registered memory that the streams themselves hold.
  std::size_t window_bytes() const;

  /// `count` 8 B inline writes, one outstanding.
  Latencies latencies(std::uint64_t count, const PollPolicy& policy, const Clock& clock);

  /// 8 B inline writes on one QP, kBatch a doorbell, one CQE in kSignalEvery; from the first post to the
  /// last CQE. \param messages a multiple of kSignalEvery
  Stream verbs_stream(std::uint64_t messages, const PollPolicy& policy, const Clock& clock);
  /// The same, with WQEs written straight into the ring.
  Stream devx_stream(std::uint64_t messages, const PollPolicy& policy, const Clock& clock);

  /// `count` writes of kCopyBytes from memory to memory, and as many memcpy of the same blocks by this
  /// thread, in turns of kCopySlots so that both meet the same machine. \param count at least kCopySlots
  Copies copies(std::uint64_t count, const PollPolicy& policy, const Clock& clock);

 private:
  double nic_copies(std::uint64_t first, std::uint64_t count, const PollPolicy& policy, const Clock& clock);
  double cpu_copies(std::uint64_t first, std::uint64_t count, const Clock& clock);
  std::byte* copy_source(std::uint64_t i) const;
  std::byte* nic_target(std::uint64_t i) const;
  std::byte* cpu_target(std::uint64_t i) const;
  void stamp_sources(std::uint64_t turn);
  std::span<std::byte> target() const;

  host::ProtectionDomain domain_;
  host::Memory memory_;
  host::VerbsQueue verbs_;
  host::VerbsQueue verbs_peer_;
  host::DevxQueue devx_;
  host::DevxQueue devx_peer_;
  std::uint64_t devx_producer_ = 0;  ///< blocks
  std::uint64_t devx_consumer_ = 0;  ///< blocks
  std::uint64_t devx_cqe_ = 0;       ///< entries
  std::uint64_t seed_;
};

}  // namespace belfry::bench
