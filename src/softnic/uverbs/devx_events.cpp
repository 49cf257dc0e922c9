// Events of DEVX objects: channels, subscriptions, delivery.

#include <fcntl.h>
#include <poll.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "belfry/port/byte_order.hpp"
#include "softnic/uverbs/devx_objects.hpp"

namespace belfry::softnic {
namespace {

/// Event queue entry of mlx5 (struct mlx5_eqe of the kernel): type in byte 1, data from byte 32 on, in
/// which the number of a QP or a CQ is the seventh word; of a CQ error it is the first.
struct EventEntry {
  std::uint8_t reserved0;
  std::uint8_t type;
  std::uint8_t reserved2[30];
  Be32 data[7];
  std::uint8_t reserved60[4];
};
static_assert(sizeof(EventEntry) == 64 && offsetof(EventEntry, data) == 32);

/// What a read of a channel returns; a channel that omits data returns the cookie alone.
struct EventRecord {
  std::uint64_t cookie;
  EventEntry entry;
};
static_assert(sizeof(EventRecord) == 72 && sizeof(EventRecord) <= EventChannel::kMaxRecordBytes);
static_assert(sizeof(mlx5_ib_uapi_devx_async_event_hdr) == offsetof(EventRecord, entry));

constexpr std::size_t kMostEventTypes = 32;

bool known(std::uint16_t type) {
  switch (static_cast<PrmEvent>(type)) {
    case PrmEvent::completion:
    case PrmEvent::communication_established:
    case PrmEvent::sq_drained:
    case PrmEvent::cq_error:
    case PrmEvent::wq_catastrophic:
    case PrmEvent::wq_invalid_request:
    case PrmEvent::wq_access_error:
      return true;
  }
  return false;
}

PrmEvent event_of(AsyncEvent event) {
  switch (event) {
    case AsyncEvent::cq_error:
      return PrmEvent::cq_error;
    case AsyncEvent::qp_fatal:
      return PrmEvent::wq_catastrophic;
    case AsyncEvent::qp_request_error:
      return PrmEvent::wq_invalid_request;
    case AsyncEvent::qp_access_error:
      return PrmEvent::wq_access_error;
    case AsyncEvent::communication_established:
      return PrmEvent::communication_established;
    case AsyncEvent::sq_drained:
      return PrmEvent::sq_drained;
  }
  return PrmEvent::wq_catastrophic;
}

bool is_eventfd(int descriptor) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  char target[32] = {};
  const long bytes = ::syscall(SYS_readlinkat, AT_FDCWD, link.c_str(), target, sizeof target - 1);
  return bytes > 0 && std::string_view(target) == "anon_inode:[eventfd]";
}

/// Adds one to an eventfd, unless that would block.
void tell(int eventfd) {
  pollfd writable{eventfd, POLLOUT, 0};
  if (::poll(&writable, 1, 0) != 1) return;
  const std::uint64_t one = 1;
  static_cast<void>(::syscall(SYS_write, eventfd, &one, sizeof one));
}

constexpr std::array kAllocAttributes{
    descriptor_attribute(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE),
    number_attribute(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS),
};

int alloc_channel(FileState& file, IoctlCall& call) {
  std::uint64_t flags = 0;
  if (const int error = call.read_number(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, flags); error != 0)
    return error;
  if ((flags & ~std::uint64_t{MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA}) != 0) return EINVAL;
  const std::size_t bytes = flags != 0 ? sizeof(std::uint64_t) : sizeof(EventRecord);
  int descriptor = -1;
  auto channel = EventChannel::create(EventChannel::Purpose::devx, bytes, descriptor);
  if (!channel) return channel.error();
  const int error = call.answer_handle(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE,
                                       static_cast<std::uint32_t>(descriptor));
  if (error != 0) {
    ::syscall(SYS_close, descriptor);
    return error;
  }
  file.keep_channel(*channel);
  return 0;
}

constexpr std::array kSubscribeAttributes{
    descriptor_attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE),
    handle_attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, false),
    in_at_least(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, sizeof(std::uint16_t)),
    in_attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 8, false),
    in_attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, 4, false),
};

/// The types that a call lists. \return EINVAL: a half one, too many, or one that no object has
int read_types(const IoctlCall& call, std::vector<std::uint16_t>& types) {
  std::vector<std::byte> bytes;
  if (const int error = call.read_bytes(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, bytes); error != 0) {
    return error;
  }
  if (bytes.size() % sizeof(std::uint16_t) != 0 || bytes.size() > kMostEventTypes * sizeof(std::uint16_t))
    return EINVAL;
  types.resize(bytes.size() / sizeof(std::uint16_t));
  std::memcpy(types.data(), bytes.data(), bytes.size());
  return std::all_of(types.begin(), types.end(), known) ? 0 : EINVAL;
}

int subscribe(FileState& file, IoctlCall& call) {
  if (!file.devx) return EINVAL;
  auto channel = file.find_channel(EventChannel::Purpose::devx,
                                   call.descriptor(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE));
  if (!channel) return EBADF;
  // Events of no object are those of the port and the device, which never change here.
  if (!call.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE)) return EOPNOTSUPP;
  const std::uint32_t handle = call.handle(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
  DevxObject* object = file.objects.find<DevxObject>(handle);
  if (object == nullptr) return file.objects.find(handle) == nullptr ? ENOENT : EINVAL;
  std::uint64_t cookie = 0;
  std::vector<std::uint16_t> types;
  if (const int error = read_types(call, types); error != 0) return error;
  if (const int error = call.read_number(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, cookie); error != 0)
    return error;

  int eventfd = -1;
  if (call.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM)) {
    std::uint64_t number = 0;
    if (const int error = call.read_number(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, number); error != 0)
      return error;
    eventfd = static_cast<int>(static_cast<std::int32_t>(number));
    if (!is_eventfd(eventfd)) return EBADF;
  }
  return object->subscribe(types, cookie, std::move(channel), eventfd);
}

}  // namespace

int DevxObject::subscribe(const std::vector<std::uint16_t>& types, std::uint64_t cookie,
                          std::shared_ptr<EventChannel> channel, int eventfd) {
  std::vector<DevxSubscription> more;
  for (const std::uint16_t type : types) {
    DevxSubscription s{static_cast<PrmEvent>(type), cookie, channel, -1};
    if (eventfd >= 0) s.eventfd = static_cast<int>(::syscall(SYS_fcntl, eventfd, F_DUPFD_CLOEXEC, 0));
    if (eventfd >= 0 && s.eventfd < 0) {
      close_all(more);
      return EBADF;
    }
    more.push_back(std::move(s));
  }
  const std::lock_guard lock(mutex_);
  subscriptions_.insert(subscriptions_.end(), more.begin(), more.end());
  return 0;
}

void DevxObject::close_all(std::vector<DevxSubscription>& subscriptions) {
  for (const DevxSubscription& s : subscriptions) {
    if (s.eventfd >= 0) ::syscall(SYS_close, s.eventfd);
  }
  subscriptions.clear();
}

DevxObject::~DevxObject() {
  for (const DevxSubscription& s : subscriptions_) s.channel->withdraw(this);
  close_all(subscriptions_);
}

void DevxObject::completion(std::uint32_t cqn) { report(PrmEvent::completion, cqn); }
void DevxObject::async(AsyncEvent event, std::uint32_t object_number) {
  report(event_of(event), object_number);
}

void DevxObject::report(PrmEvent event, std::uint32_t object_number) {
  EventRecord record{};
  record.entry.type = static_cast<std::uint8_t>(event);
  record.entry.data[event == PrmEvent::cq_error ? 0 : 6].set(object_number);
  const std::lock_guard lock(mutex_);
  for (const DevxSubscription& s : subscriptions_) {
    if (s.event != event) continue;
    if (s.eventfd >= 0) {
      tell(s.eventfd);
    } else {
      record.cookie = s.cookie;
      s.channel->post(this, &record);
    }
  }
}

std::span<const IoctlMethod> devx_event_methods() {
  static constexpr std::array kMethods{
      IoctlMethod{MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC,
                  kAllocAttributes, alloc_channel},
      IoctlMethod{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, kSubscribeAttributes, subscribe},
  };
  return kMethods;
}

}  // namespace belfry::softnic
