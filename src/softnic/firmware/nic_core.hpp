#pragma once
/// \file
/// Everything the NIC's stages share: tables, lists of queues with work, clock and fabric. One lock
/// guards all of it; the engine holds it while it polls, control calls while they change something. Where a
/// poll waits for a GPU, in GpuPayload's calls, the engine lets go of it (nic_lock.hpp).

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "belfry/wire/doorbell.hpp"
#include "softnic/fabric/fabric.hpp"
#include "softnic/firmware/completion_queue.hpp"
#include "softnic/firmware/keys.hpp"
#include "softnic/firmware/nic.hpp"
#include "softnic/firmware/nic_lock.hpp"
#include "softnic/firmware/queue_pair.hpp"
#include "softnic/firmware/slot_table.hpp"
#include "softnic/gpu/gpu_copiers.hpp"
#include "softnic/gpu/gpu_engines.hpp"
#include "softnic/gpu/gpu_payload.hpp"
#include "softnic/gpu/gpu_slots.hpp"

namespace belfry::softnic {

inline constexpr unsigned kDoorbellHalves = wire::kUarRegistersPerPage * 2;

/// Where a UAR page says which one it is: UarTag. No register is there, and a program does not look.
inline constexpr std::uint32_t kUarTagOffset = wire::kUarBytes - sizeof(std::uint64_t);
inline constexpr std::uint64_t kUarTag = 0x62666c75'00000000;  ///< and its number

/// A doorbell page and whoever rings there.
struct Uar {
  std::uint32_t number = 0;
  unsigned char* page = nullptr;
  std::uint64_t seen_send[kDoorbellHalves] = {};
  std::uint64_t seen_arm = 0;
  std::vector<QueuePair*> qps;  ///< of the CPU: who looks here for them must not take doorbells of others
  std::vector<CompletionQueue*> cqs;
  std::uint32_t gpu_users = 0;  ///< queues in GPU memory
  /// Where kernels ring in place of a register, and the engine looks; null: there.
  const std::uint64_t* gpu_registers[wire::kUarRegistersPerPage] = {};
  QueuePair* recent = nullptr;  ///< of `qps`: the one that rang last
};

struct ProtectionDomain {
  std::uint32_t number = 0;
  unsigned device = 0;
  const void* owner = nullptr;
  std::uint32_t users = 0;
};

/// Counters of what happened, for tests and for whoever asks.
struct NicCounters {
  std::uint64_t wqes = 0;
  std::uint64_t frames_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t frames_ignored = 0;  ///< malformed, or for nobody
  std::uint64_t retransmissions = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t rnr_naks = 0;
  std::uint64_t sequence_naks = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t memory_faults = 0;
};

class NicCore {
 public:
  NicCore(const Config& config, std::unique_ptr<Fabric> port);

  const Config config;
  std::vector<DeviceIdentity> devices;
  std::unique_ptr<Fabric> fabric;
  NicLock lock;

  std::vector<MkeyEntry> keys;
  std::deque<std::uint32_t> free_keys;
  std::uint32_t keys_used = 0;
  std::uint64_t key_epoch = 0;  ///< changes whenever a key goes: addresses resolved before are void
  SlotTable<ProtectionDomain> pds;
  SlotTable<CompletionQueue> cqs;
  SlotTable<Uar> uars;

  /// QPNs of this process: a table of kQpnsPerBlock rows for each block it owns.
  std::array<std::unique_ptr<SlotTable<QueuePair>>, kQpnBlocks> qp_blocks;
  std::vector<std::uint32_t> owned_blocks;
  std::uint32_t qps_used = 0;

  std::vector<QueuePair*> sending;   ///< QPs with WQEs to start, emit or await
  std::vector<QueuePair*> owing;     ///< QPs with responses to send
  std::vector<QueuePair*> flushing;  ///< QPs in error
  std::uint64_t epoch = 1;           ///< changes with every change to a QP
  std::uint64_t next_timer = 0;      ///< ns; earliest deadline of a QP; 0: none
  std::uint64_t now = 0;             ///< ns, as time() read it in this poll
  bool time_known = false;
  bool more_mail = false;              ///< frames wait that this poll had no budget for: no timer is due yet
  std::uint64_t (*clock)() = nullptr;  ///< tests put their own here
  NicCounters counters;
  InHand in_hand;

  // Queues in GPU memory.
  std::vector<QueuePair*> gpu_qps;
  GpuSlots gpu_queue_slots;
  GpuSlots gpu_cq_slots;
  std::uint64_t gpu_generations = 0;  ///< given out
  GpuCopiers gpu_copiers{lock};
  GpuPayload gpu_payload{gpu_copiers};
  GpuEngines gpu;  ///< last: its threads use the rest

  /// Reused by the requester for the WQE in hand.
  alignas(64) unsigned char image[kMaxWqeBytes + wire::kBlockBytes];
  DecodedWqe wqe;

  QueuePair* find_qp(std::uint32_t qpn) const {
    const auto& block = qp_blocks[(qpn & wire::kQpnMask) >> kQpnBlockBits];
    return block ? block->find(qpn & wire::kQpnMask) : nullptr;
  }
  /// \return where `bytes` at `address` lie, or null and why not
  KeyFault resolve(std::uint32_t key, std::uint32_t pd, std::uint64_t address, std::uint64_t bytes,
                   std::uint32_t rights, unsigned char** memory) const {
    const KeyFault fault = check_key(keys.data(), static_cast<std::uint32_t>(keys.size()), key, pd, address,
                                     bytes, rights, memory);
    if (fault != KeyFault::none || !is_gpu(keys[key >> 8].owner)) return fault;
    return gpu_copiers.has(keys[key >> 8].owner) ? KeyFault::none : KeyFault::out_of_reach;
  }

  // Payload is touched through these and nothing else: it may be a GPU's.

  /// Moves bytes; where they go to GPU memory they have come with gpu_payload.flush().
  void move(unsigned char* to, const unsigned char* from, std::size_t bytes) {
    if (gpu_payload.empty()) return move_payload(to, from, bytes);
    gpu_payload.move(to, from, bytes);
  }
  /// As softnic::scatter().
  void scatter(const SpanList& list, std::uint64_t offset, const unsigned char* from, std::uint64_t bytes) {
    softnic::scatter(list, offset, from, bytes, [this](auto... a) { move(a...); });
  }
  /// Makes parts ready for move(): as touch(), and what lies in GPU memory is there.
  void vouch(const FramePart* parts, std::uint32_t count) {
    if (gpu_payload.empty()) return touch(parts, count);
    for (std::uint32_t i = 0; i < count; ++i) gpu_payload.vouch(parts[i]);
  }
  /// Makes parts ready to be read: as touch(), and with copies of what lies in GPU memory in its place.
  void stage(FramePart* parts, std::uint32_t count) {
    if (!gpu_payload.empty()) gpu_payload.stage(parts, count);
    touch(parts, count);
  }

  /// ns; read at most once a poll, and only where a timer needs it: a clock costs as much as a small
  /// WRITE.
  std::uint64_t time() {
    if (!time_known) {
      now = clock();
      time_known = true;
    }
    return now;
  }
  void arm_timer(std::uint64_t deadline) {
    if (deadline != 0 && (next_timer == 0 || deadline < next_timer)) next_timer = deadline;
  }
  void queue_sending(QueuePair& qp) {
    if (qp.queued) return;
    qp.queued = true;
    sending.push_back(&qp);
  }
  /// Forgets a QP wherever it is listed.
  void forget(QueuePair& qp);
};

/// The lock as a control call takes it: the engine steps aside for whoever waits.
class ControlLock {
 public:
  enum class While : std::uint8_t { polls_are_over, a_poll_waits };

  /// \param state `a_poll_waits`: also in the middle of a poll, see NicLock::lock_control()
  explicit ControlLock(NicCore& core, While state = While::polls_are_over) : core_(core) {
    core_.lock.lock_control(state == While::a_poll_waits);
  }
  ~ControlLock() { core_.lock.unlock(); }
  ControlLock(const ControlLock&) = delete;
  ControlLock& operator=(const ControlLock&) = delete;

 private:
  NicCore& core_;
};

struct Nic::Impl : NicCore {
  using NicCore::NicCore;
};

}  // namespace belfry::softnic
