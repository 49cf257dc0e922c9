#pragma once
/// \file
/// What a software ConnectX is told when it starts. `belfry softnic` writes it into BELFRY_SOFTNIC_*
/// environment variables, the library reads it back from there.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace belfry::softnic {

enum class LinkLayer : std::uint8_t { infiniband, ethernet };

/// How an idle NIC waits: it spins, then yields its core, then sleeps in doubling steps.
struct IdlePolicy {
  std::chrono::microseconds spin{50};
  std::chrono::microseconds yield{2000};
  std::chrono::microseconds sleep_first{50};
  std::chrono::microseconds sleep_most{2000};
};

/// Faults put between requester and responder, for tests of the transport. Rates are in 0..1.
/// Any rate above 0 turns the direct path between two QPs of one process off.
struct FaultPlan {
  double drop = 0;
  double duplicate = 0;
  double reorder = 0;
  bool any() const { return drop > 0 || duplicate > 0 || reorder > 0; }
};

struct Limits {
  std::uint32_t qps = 16384;
  std::uint32_t cqs = 65536;
  std::uint32_t mkeys = 1u << 20;
  std::uint32_t pds = 65536;
  std::uint32_t send_queue_blocks = 32768;
  std::uint32_t receive_entries = 32768;
  std::uint32_t cq_entries = 1u << 22;
  std::uint32_t max_message = 1u << 30;  ///< bytes
  std::uint32_t read_atomic_depth = 16;
};

/// Where the GPU engine looks for doorbells.
enum class GpuPoll : std::uint8_t {
  doorbell,  ///< at the register, over PCIe, and then at the record
  record,    ///< at the record, which a poster must then order before it: not with Ordering::gpu_fence
};

/// What moves payload in GPU memory for queues in host memory.
enum class GpuCopies : std::uint8_t {
  automatic,  ///< a kernel on that GPU while it is there, and CUDA
  cuda,       ///< CUDA alone
};

/// Where the registers lie whose address a program's kernels are given.
enum class GpuDoorbells : std::uint8_t {
  host,  ///< in the UAR page, as a NIC's do: a doorbell goes over PCIe
  gpu,   ///< in the memory of the engine's GPU. For tests: no NIC has it
};

/// The engine for queues in GPU memory, and the copier for others.
struct GpuConfig {
  std::optional<unsigned> gpu;          ///< where it runs, by CUDA's number; unset: each queue's own GPU
  unsigned blocks = 1;                  ///< of threads
  unsigned warps = 8;                   ///< a block
  std::chrono::microseconds idle{200};  ///< without work for so long, either leaves the GPU
  GpuPoll poll = GpuPoll::doorbell;
  GpuDoorbells doorbells = GpuDoorbells::host;
  bool unordered_writes = false;  ///< WRITEs pass each other, as if all memory were of relaxed ordering
  GpuCopies copies = GpuCopies::automatic;
};

struct Config {
  std::string fabric = "default";  ///< processes of one user with the same name reach each other
  unsigned node = 0;               ///< 0..255: devices of different nodes have different addresses
  unsigned devices = 1;            ///< 1..16
  LinkLayer link = LinkLayer::infiniband;
  unsigned mtu = 0;  ///< InfiniBand: path MTU (default 4096). Ethernet: the netdev's MTU (default 1500)
  IdlePolicy idle;
  FaultPlan faults;
  Limits limits;
  GpuConfig gpu;
  std::uint64_t seed = 0;       ///< 0: from the system; seeds QPN blocks, first numbers and the fault plan
  bool direct_loopback = true;  ///< QPs of one process meet without packets

  /// Reads BELFRY_SOFTNIC_*. Throws std::invalid_argument that names variable, value and range.
  static Config from_environment();
};

}  // namespace belfry::softnic
