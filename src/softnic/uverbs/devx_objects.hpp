#pragma once
/// \file
/// Objects that applications make with PRM commands, and the commands of each kind.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "softnic/uverbs/devx_mailbox.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {

enum class DevxKind : std::uint8_t { none, pd, mkey, cq, qp };

/// Event types of the PRM (enum mlx5_event of the kernel).
enum class PrmEvent : std::uint16_t {
  completion = 0x00,
  communication_established = 0x02,
  sq_drained = 0x03,
  cq_error = 0x04,
  wq_catastrophic = 0x05,
  wq_invalid_request = 0x10,
  wq_access_error = 0x11,
};

/// Who wants to hear of one type of event of one object.
struct DevxSubscription {
  PrmEvent event;
  std::uint64_t cookie = 0;
  std::shared_ptr<EventChannel> channel;  ///< null where an eventfd is told instead
  int eventfd = -1;                       ///< ours
};

class DevxObject final : public Object, public EventSink {
 public:
  static constexpr ObjectType kType = ObjectType::devx_object;
  explicit DevxObject(DevxKind object_kind) : Object(kType), kind(object_kind) {}
  ~DevxObject() override;
  int release(FileState& file) override;
  void completion(std::uint32_t cqn) override;
  void async(AsyncEvent event, std::uint32_t number) override;

  /// \param eventfd told instead of the channel where it is not negative; it is duplicated
  /// \return EBADF: no such descriptor
  int subscribe(const std::vector<std::uint16_t>& types, std::uint64_t cookie,
                std::shared_ptr<EventChannel> channel, int eventfd);

  const DevxKind kind;
  std::uint32_t number = 0;  ///< what mailboxes call it; of an mkey its index
  std::uint32_t key = 0;     ///< of an mkey

 private:
  static void close_all(std::vector<DevxSubscription>& subscriptions);
  void report(PrmEvent event, std::uint32_t object_number);

  std::mutex mutex_;
  std::vector<DevxSubscription> subscriptions_;
};

/// A part of a umem, as an address.
struct UmemPlace {
  UmemObject* umem = nullptr;
  void* memory = nullptr;
  MemoryOwner owner = kHostMemory;
};

/// Finds `bytes` at `offset` of a umem of this file.
PrmOutcome place_in_umem(FileState& file, std::uint32_t number, std::uint64_t offset, std::uint64_t bytes,
                         bool writable, UmemPlace& place);

/// Commands that make an object; `object` is of the right kind and not in the table yet.
PrmOutcome devx_alloc_pd(FileState& file, Mailbox& mailbox, DevxObject& object);
PrmOutcome devx_create_mkey(FileState& file, Mailbox& mailbox, DevxObject& object);
PrmOutcome devx_create_cq(FileState& file, Mailbox& mailbox, DevxObject& object);
PrmOutcome devx_create_qp(FileState& file, Mailbox& mailbox, DevxObject& object);

/// Commands on an object that exists; `number` is the one in the mailbox.
PrmOutcome devx_modify_qp(FileState& file, Mailbox& mailbox, std::uint32_t number);
PrmOutcome devx_query_qp(FileState& file, Mailbox& mailbox, std::uint32_t number);

/// Commands on no object.
PrmOutcome devx_query_hca_cap(FileState& file, Mailbox& mailbox);
PrmOutcome devx_query_adapter(FileState& file, Mailbox& mailbox);
PrmOutcome devx_query_issi(FileState& file, Mailbox& mailbox);
PrmOutcome devx_query_nic_vport_context(FileState& file, Mailbox& mailbox);
PrmOutcome devx_query_hca_vport_context(FileState& file, Mailbox& mailbox);
PrmOutcome devx_query_roce_address(FileState& file, Mailbox& mailbox);

}  // namespace belfry::softnic
