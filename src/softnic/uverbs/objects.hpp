#pragma once
/// \file
/// The types of objects behind the handles of a uverbs file.

#include <cstdint>
#include <memory>

#include "softnic/firmware/control.hpp"
#include "softnic/uverbs/event_channel.hpp"
#include "softnic/uverbs/file_state.hpp"
#include "softnic/uverbs/object_table.hpp"
#include "softnic/uverbs/user_memory.hpp"

namespace belfry::softnic {

class PdObject final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::pd;
  explicit PdObject(std::uint32_t pd_number) : Object(kType), number(pd_number) {}
  int release(FileState& file) override { return file.nic.dealloc_pd(number); }

  const std::uint32_t number;
};

class MrObject final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::mr;
  MrObject() : Object(kType) {}
  int release(FileState& file) override { return file.nic.destroy_mkey(key); }

  std::uint32_t key = 0;
  MkeyAttributes attributes;
  PdObject* pd = nullptr;
  LockedPages locked;
};

/// Reports events of the CQ to the application, on the NIC's thread.
class CqObject final : public Object, public EventSink {
 public:
  static constexpr ObjectType kType = ObjectType::cq;
  CqObject() : Object(kType) {}
  int release(FileState& file) override;
  void completion(std::uint32_t cqn) override;
  void async(AsyncEvent event, std::uint32_t number) override;

  std::uint32_t number = 0;
  std::uint64_t user_handle = 0;
  std::uint32_t entries = 0;                  ///< as the application counts them: one less than there are
  std::uint32_t entry_bytes = 0;              ///< 64 or 128
  std::shared_ptr<EventChannel> completions;  ///< may be null
  std::shared_ptr<EventChannel> events;
  LockedPages locked;
  std::uint32_t completions_reported = 0;  ///< set by release()
  std::uint32_t events_reported = 0;
};

struct QpCapacity {
  std::uint32_t send_requests = 0;
  std::uint32_t receive_requests = 0;
  std::uint32_t send_sge = 0;
  std::uint32_t receive_sge = 0;
  std::uint32_t inline_bytes = 0;
};

class QpObject final : public Object, public EventSink {
 public:
  static constexpr ObjectType kType = ObjectType::qp;
  QpObject() : Object(kType) {}
  int release(FileState& file) override;
  void completion(std::uint32_t) override {}
  void async(AsyncEvent event, std::uint32_t number) override;

  std::uint32_t number = 0;
  std::uint64_t user_handle = 0;
  QpCapacity capacity;
  bool signal_all = false;
  std::shared_ptr<EventChannel> events;
  LockedPages locked;
  std::uint32_t events_reported = 0;  ///< set by release()
};

/// An address handle. RC queue pairs need none, so it is a handle and what it was made of.
class AhObject final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::ah;
  AhObject() : Object(kType) {}
  int release(FileState&) override { return 0; }

  PathAttributes path;
};

class UarObject final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::uar;
  explicit UarObject(const StaticUar& page_of_registers) : Object(kType), uar(page_of_registers) {}
  int release(FileState& file) override { return file.detach_page(uar); }

  const StaticUar uar;
};

/// Memory that DEVX objects name by number.
class UmemObject final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::devx_umem;
  UmemObject() : Object(kType) {}
  int release(FileState&) override { return 0; }

  std::uint32_t number = 0;
  UserAddress address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t access = 0;
  MemoryOwner owner = kHostMemory;
  LockedPages locked;
};

/// As check_pinnable(), and for a GPU's memory, which no page table of this process maps.
/// \param[out] owner whose it is
int check_registrable(FileState& file, UserAddress start, std::uint64_t bytes, bool writable,
                      MemoryOwner& owner);

/// Whether the offset within a page is the same in memory and in the addresses that requests use, as it must
/// be.
bool same_page_offset(std::uint64_t start, std::uint64_t iova);

/// What a region is before it has a key.
struct RegionRequest {
  std::uint32_t pd_handle = 0;
  std::uint64_t iova = 0;
  std::uint64_t start = 0;  ///< of the memory, in this process
  std::uint64_t length = 0;
  std::uint32_t access = 0;
};

/// A region as asked for, without a key and not in the table yet. \return null where there is no such PD
std::unique_ptr<MrObject> make_region(FileState& file, const RegionRequest& request);

/// Makes a key for what the attributes of `mr` describe, once its memory and its rights have been checked.
/// \return 0 or an errno
int make_key(FileState& file, MrObject& mr);

/// Ends a command that has put `object` into the table: where its response could not be delivered, the
/// object goes away again.
/// \param error of the response, 0 if it was delivered
/// \return `error`
int finish_creation(FileState& file, Object& object, int error);

}  // namespace belfry::softnic
