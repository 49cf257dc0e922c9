#pragma once
/// \file
/// An RC queue pair made of DEVX objects: its rings, doorbell records and doorbell register are plain
/// addresses, so that whoever writes WQEs (a kernel, a worker, a test) needs no library to post.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "belfry/device/view.hpp"
#include "belfry/host/doorbell_register.hpp"
#include "belfry/host/queue.hpp"
#include "belfry/host/queue_memory.hpp"
#include "belfry/wire/cqe.hpp"
#include "belfry/wire/doorbell.hpp"

namespace belfry::host {

using device::CompletionLayout;
using device::DoorbellMode;  // no_record needs DevxCapabilities::no_record

struct DevxQueueOptions {
  std::uint32_t send_blocks = 256;    ///< 64 B blocks, a power of two up to 32768
  std::uint32_t receive_entries = 0;  ///< a power of two up to 32768, or 0: no receive queue
  std::uint32_t receive_stride = 16;  ///< bytes of a receive entry: 16, 32, ... 2048
  DoorbellMode doorbell = DoorbellMode::record;
  CompletionLayout completions = CompletionLayout::ring;  ///< of the send queue
  /// The device looks at no consumer index, so the poller need not write one. Without overruns this
  /// needs as many entries as blocks, which is what belfry makes. Always so for a collapsed CQ.
  bool ignore_overrun = true;
  std::uint32_t user_index = 0;          ///< 24 bits; what CQEs of version 1 carry
  Access remote_access = kAllAccess;     ///< what the peer may do; regions narrow it further
  std::optional<ReadAtomicDepth> depth;  ///< what this end offers, at most the device's; unset: all of that
  std::shared_ptr<QueueMemory> memory;   ///< null: host memory
  std::shared_ptr<QueueMemory> completion_memory;  ///< of both completion rings; null: as `memory`
  std::shared_ptr<QueueMemory> record_memory;      ///< of the doorbell record; null: as `memory`
  /// A register to ring together with other queues, which needs DoorbellMode::record; unset: its own.
  std::optional<DoorbellRegister> doorbell_register;
};

/// A completion ring, raw. A fresh one is filled with 0xff: opcode 15 and counter 0xffff, which no
/// reader takes for a completion.
struct CompletionRing {
  wire::Cqe* entries = nullptr;
  std::uint32_t count = 0;  ///< entries, a power of two
  CompletionLayout layout = CompletionLayout::ring;
  bool ignore_overrun = true;
  wire::CqDoorbellRecord* record = nullptr;
  std::uint32_t cqn = 0;
};

/// Everything that posting and polling need.
struct DevxQueueView {
  std::uint32_t qpn = 0;
  std::byte* send_queue = nullptr;  ///< send_blocks of 64 B
  std::uint32_t send_blocks = 0;
  std::byte* receive_queue = nullptr;  ///< receive_entries of receive_stride bytes
  std::uint32_t receive_entries = 0;
  std::uint32_t receive_stride = 0;
  wire::QpDoorbellRecord* record = nullptr;  ///< in no_record mode the device ignores its send word
  DoorbellMode doorbell = DoorbellMode::record;
  /// A doorbell is one 8 B store here: wire::send_doorbell(producer << 8, qpn << 8), where the producer
  /// is one past the last block posted, 16 bits. In no_record mode the device takes it from there.
  void* uar_register = nullptr;
  std::uint32_t uar_page = 0;  ///< the device's page id
  bool owns_register = false;  ///< false: other queues of this process ring it too
  CompletionRing send_completions;
  CompletionRing receive_completions;  ///< count 0 where there is no receive queue
};

class DevxQueue final : public Queue {
 public:
  /// Throws Error: unsupported (no DEVX, or no_record not offered), bad_argument, locked_memory, system.
  explicit DevxQueue(const ProtectionDomain& domain, const DevxQueueOptions& options = {});
  ~DevxQueue() override;

  std::uint32_t qpn() const override;
  QueueAddress local_address() const override;
  ConnectionPlan connect(const QueueAddress& remote, const ConnectionParameters& parameters) override;
  void fail() override;

  const DevxQueueView& view() const;
  const ProtectionDomain& domain() const;

 private:
  struct RecordPlace {
    std::uint32_t umem_id = 0;
    std::size_t offset = 0;
  };
  RecordPlace place_rings();
  void create_qp(const RecordPlace& record);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::host
