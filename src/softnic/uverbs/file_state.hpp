#pragma once
/// \file
/// What one open uverbs file holds, shared by the files of this folder: one for each family of
/// commands. Handlers return 0 or a positive errno and are called with `mutex` held. The order of locks is
/// file, then NIC, then channel: events come from the NIC and take a channel's lock only.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "softnic/firmware/nic.hpp"
#include "softnic/uverbs/event_channel.hpp"
#include "softnic/uverbs/file.hpp"
#include "softnic/uverbs/object_table.hpp"
#include "softnic/uverbs/uar_pages.hpp"

namespace belfry::softnic {

/// A UAR that belongs to the file and not to an object: libraries without dynamic UARs get a number
/// of registers with their context.
struct StaticUar {
  UarPages::Page page;
  std::uint32_t uar = 0;
};

class FileState {
 public:
  FileState(Nic& nic_of_process, unsigned device_index)
      : nic(nic_of_process), device(device_index), identity(nic_of_process.device(device_index)) {}
  ~FileState();
  FileState(const FileState&) = delete;
  FileState& operator=(const FileState&) = delete;

  const Limits& limits() const { return nic.config().limits; }

  /// The channel that `descriptor` reads from, null if it is none of this file's for that purpose.
  std::shared_ptr<EventChannel> find_channel(EventChannel::Purpose purpose, int descriptor) const;
  void keep_channel(std::shared_ptr<EventChannel> channel);

  /// Gives the NIC a new page of registers.
  Result<StaticUar> attach_page(Result<UarPages::Page> page);
  /// \return EBUSY: queues still name it, and it stays
  int detach_page(const StaticUar& uar);

  Nic& nic;
  const unsigned device;
  const DeviceIdentity& identity;
  bool enforce_memlock = false;  ///< BELFRY_SOFTNIC_MEMLOCK=enforce

  std::mutex mutex;
  bool has_context = false;
  bool devx = false;  ///< the context was made for DEVX
  std::uint8_t cqe_version = 0;
  std::uint32_t static_registers = 0;
  std::uint32_t next_static_register = 0;
  std::vector<StaticUar> static_uars;
  UarPages pages;
  ObjectTable objects;
  std::shared_ptr<EventChannel> async_channel;
  std::uint8_t key_variant = 0;  ///< of the next memory key, so that a stale key is not valid again soon

 private:
  std::vector<std::shared_ptr<EventChannel>> channels_;
};

struct UverbsFile::Impl : FileState {
  using FileState::FileState;
};

/// Port number of every device.
inline constexpr std::uint32_t kPort = 1;
inline constexpr std::uint32_t kCompletionVectors = 8;

}  // namespace belfry::softnic
