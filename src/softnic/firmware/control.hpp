#pragma once
/// \file
/// What the kernel's side (uverbs/) asks of the NIC: attributes of each object, in the NIC's own terms.
/// Verbs commands and DEVX mailboxes both end here.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "softnic/firmware/keys.hpp"
#include "softnic/identity.hpp"
#include "softnic/result.hpp"

namespace belfry::softnic {

/// Access rights, the bits of enum ibv_access_flags.
enum Access : std::uint32_t {
  kAccessLocalWrite = 1u << 0,
  kAccessRemoteWrite = 1u << 1,
  kAccessRemoteRead = 1u << 2,
  kAccessRemoteAtomic = 1u << 3,
  kAccessRelaxedOrdering = 1u << 20,
};

enum class AsyncEvent : std::uint8_t {  // values of enum ibv_event_type
  cq_error = 0,
  qp_fatal = 1,
  qp_request_error = 2,
  qp_access_error = 3,
  communication_established = 4,
  sq_drained = 5,
};

/// Where the NIC reports events. Called on the NIC's thread with the NIC's lock held: an
/// implementation hands over and returns, it neither blocks nor calls the NIC.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// An armed CQ got the completion it waited for.
  virtual void completion(std::uint32_t cqn) = 0;
  /// \param number CQN for cq_error, else QPN
  virtual void async(AsyncEvent event, std::uint32_t number) = 0;
};

struct CqAttributes {
  unsigned device = 0;
  const void* owner = nullptr;  ///< the context it belongs to: what it names must be of the same one
  void* buffer = nullptr;       ///< entries << log_entries, of entry_bytes each
  unsigned log_entries = 0;
  unsigned entry_bytes = 64;        ///< 64 or 128
  void* doorbell_record = nullptr;  ///< wire::CqDoorbellRecord
  std::uint32_t uar = 0;            ///< page id at whose kUarCqDoorbell this CQ is armed
  bool collapsed = false;           ///< every CQE goes to entry 0
  bool ignore_overrun = false;
  MemoryOwner buffer_owner = kHostMemory;  ///< a GPU: then only queues in GPU memory may complete here
  MemoryOwner record_owner = kHostMemory;  ///< a GPU: then it is never armed
  EventSink* sink = nullptr;               ///< may be null: no events
};

enum class QpState : std::uint8_t { reset = 0, init, rtr, rts, sqd, sqe, error };  // enum ibv_qp_state

struct QpAttributes {
  unsigned device = 0;
  const void* owner = nullptr;  ///< the context it belongs to: what it names must be of the same one
  std::uint32_t pd = 0;
  void* send_queue = nullptr;     ///< 64 B blocks
  std::uint32_t send_blocks = 0;  ///< power of two, or 0: no send queue
  void* receive_queue = nullptr;
  std::uint32_t receive_entries = 0;       ///< power of two, or 0
  std::uint32_t receive_stride = 0;        ///< bytes, a multiple of 16
  void* doorbell_record = nullptr;         ///< wire::QpDoorbellRecord; null only with no_record
  MemoryOwner queues_owner = kHostMemory;  ///< of the rings; a GPU: the queue belongs to a GPU engine
  MemoryOwner record_owner = kHostMemory;
  bool no_record = false;  ///< send_dbr_mode: the doorbell register's index is trusted
  std::uint32_t uar = 0;
  std::uint32_t send_cq = 0;
  std::uint32_t receive_cq = 0;
  std::uint32_t user_index = 0;  ///< 24 bits, what CQEs carry
  EventSink* sink = nullptr;
};

/// A path as an address handle states it.
struct PathAttributes {
  std::uint16_t dlid = 0;
  bool global = false;
  Gid dgid{};
  std::uint8_t sgid_index = 0;
  std::uint8_t sl = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t source_path_bits = 0;
  std::uint8_t static_rate = 0;
};

/// A QP transition; a field that is absent stays as it is. Whether a transition has the attributes
/// that the specification demands is the caller's to check; whether the values are in range is ours.
struct QpModify {
  std::optional<QpState> state;
  std::optional<std::uint32_t> access;  ///< Access bits
  std::optional<std::uint16_t> pkey_index;
  std::optional<std::uint8_t> port;
  std::optional<PathAttributes> path;
  std::optional<unsigned> path_mtu;  ///< bytes
  std::optional<std::uint32_t> destination_qpn;
  std::optional<std::uint32_t> receive_psn;
  std::optional<std::uint32_t> send_psn;
  std::optional<std::uint8_t> initiator_depth;  ///< max_rd_atomic
  std::optional<std::uint8_t> responder_depth;  ///< max_dest_rd_atomic
  std::optional<std::uint8_t> min_rnr_timer;
  std::optional<std::uint8_t> timeout;  ///< 4.096 us << n; 0: for ever
  std::optional<std::uint8_t> retry_count;
  std::optional<std::uint8_t> rnr_retry;  ///< 7: for ever
  std::optional<bool> drained_event;      ///< report sq_drained in state SQD
};

/// What QUERY_QP tells.
struct QpSnapshot {
  QpState state = QpState::reset;
  std::uint32_t access = 0;
  std::uint16_t pkey_index = 0;
  std::uint8_t port = 1;
  PathAttributes path;
  unsigned path_mtu = 0;
  std::uint32_t destination_qpn = 0;
  std::uint32_t receive_psn = 0;
  std::uint32_t send_psn = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t responder_depth = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  bool drained_event = false;
  std::uint64_t send_producer = 0;  ///< blocks that doorbells have announced
  std::uint64_t send_consumer = 0;  ///< blocks that are complete
};

struct MkeyAttributes {
  unsigned device = 0;
  const void* owner = nullptr;  ///< the context it belongs to: what it names must be of the same one
  std::uint32_t pd = 0;
  std::uint64_t address = 0;  ///< first address that work requests use (iova)
  std::uint64_t length = 0;
  void* memory = nullptr;    ///< where that address lies in this process
  std::uint32_t access = 0;  ///< Access bits
  std::uint8_t variant = 0;  ///< low byte of the key
  MemoryOwner memory_owner = kHostMemory;
};

}  // namespace belfry::softnic
