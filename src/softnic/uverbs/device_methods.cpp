// Methods of the device and of event files that exist as ioctls only.

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "softnic/uverbs/ioctl_call.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {
namespace {

ib_uverbs_gid_entry gid_entry(const DeviceIdentity& identity, std::size_t index) {
  static_assert(static_cast<int>(GidType::roce_v2) == IB_UVERBS_GID_TYPE_ROCE_V2);
  const GidEntry& gid = identity.gids[index];
  ib_uverbs_gid_entry entry{};
  std::memcpy(entry.gid, gid.gid.data(), sizeof entry.gid);
  entry.gid_index = static_cast<std::uint32_t>(index);
  entry.port_num = kPort;
  entry.gid_type = static_cast<std::uint32_t>(gid.type);
  return entry;
}

bool empty(const GidEntry& entry) { return entry.gid == Gid{}; }

constexpr std::array kGidTableAttributes{
    number_attribute(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE),
    number_attribute(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, false),
    out_at_least(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0),
    out_attribute(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8),
};

int query_gid_table(FileState& file, IoctlCall& call) {
  std::uint64_t flags = 0;
  std::uint64_t entry_bytes = 0;
  if (const int error = call.read_number(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, flags); error != 0) return error;
  if (const int error = call.read_number(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_bytes); error != 0)
    return error;
  const std::size_t room = call.size(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
  if (flags != 0 || entry_bytes == 0 || room % entry_bytes != 0) return EINVAL;

  std::vector<std::byte> table;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < file.identity.gids.size(); ++i) {
    if (empty(file.identity.gids[i])) continue;
    if (table.size() + entry_bytes > room) return EINVAL;
    const ib_uverbs_gid_entry entry = gid_entry(file.identity, i);
    table.resize(table.size() + entry_bytes);
    std::memcpy(table.data() + count * entry_bytes, &entry, std::min<std::size_t>(sizeof entry, entry_bytes));
    ++count;
  }
  if (const int error =
          call.write_bytes(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table.data(), table.size());
      error != 0) {
    return error;
  }
  return call.write(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count);
}

constexpr std::array kGidEntryAttributes{
    number_attribute(UVERBS_ATTR_QUERY_GID_ENTRY_PORT),
    number_attribute(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX),
    number_attribute(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, false),
    out_at_least(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(ib_uverbs_gid_entry)),
};

int query_gid_entry(FileState& file, IoctlCall& call) {
  std::uint64_t port = 0;
  std::uint64_t index = 0;
  std::uint64_t flags = 0;
  if (const int error = call.read_number(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port); error != 0) return error;
  if (const int error = call.read_number(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index); error != 0)
    return error;
  if (const int error = call.read_number(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, flags); error != 0) return error;
  if (flags != 0 || port != kPort || index >= file.identity.gids.size()) return EINVAL;
  if (empty(file.identity.gids[index])) return ENODATA;
  return call.write(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, gid_entry(file.identity, index));
}

constexpr std::array kMlx5PortAttributes{
    in_attribute(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 4),
    out_at_least(MLX5_IB_ATTR_QUERY_PORT, offsetof(mlx5_ib_uapi_query_port, vport)),
};

/// What mlx5 knows of a port beyond verbs are its virtual ports in an embedded switch. There is none
/// here, so no field is valid.
int query_mlx5_port(FileState&, IoctlCall& call) {
  std::uint64_t port = 0;
  if (const int error = call.read_number(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, port); error != 0) return error;
  if (port != kPort) return EINVAL;
  return call.write(MLX5_IB_ATTR_QUERY_PORT, mlx5_ib_uapi_query_port{});
}

constexpr std::array kAsyncEventAttributes{descriptor_attribute(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)};

/// A further file of asynchronous events. Those of objects made by write commands go to the context's
/// own, so this one carries none.
int alloc_async_event(FileState& file, IoctlCall& call) {
  int descriptor = -1;
  auto channel = EventChannel::create(EventChannel::Purpose::asynchronous, sizeof(ib_uverbs_async_event_desc),
                                      descriptor);
  if (!channel) return channel.error();
  const int error =
      call.answer_handle(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, static_cast<std::uint32_t>(descriptor));
  if (error != 0) {
    ::syscall(SYS_close, descriptor);
    return error;
  }
  file.keep_channel(*channel);
  return 0;
}

}  // namespace

std::span<const IoctlMethod> device_methods() {
  static constexpr std::array kMethods{
      IoctlMethod{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, kGidTableAttributes, query_gid_table},
      IoctlMethod{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, kGidEntryAttributes, query_gid_entry},
      IoctlMethod{UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, kMlx5PortAttributes, query_mlx5_port},
      IoctlMethod{UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, kAsyncEventAttributes,
                  alloc_async_event},
  };
  return kMethods;
}

}  // namespace belfry::softnic
