// Completion channels and completion queues.

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cstdint>

#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {
namespace {

constexpr std::uint32_t kKnownDriverFlags = MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD |
                                            MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX |
                                            MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS;

/// What both forms of the command ask for.
struct CqRequest {
  std::uint64_t user_handle = 0;
  std::uint32_t entries = 0;
  std::uint32_t vector = 0;
  std::int32_t channel = -1;
  std::uint32_t flags = 0;
};

int check(const mlx5_ib_create_cq& driver) {
  if ((driver.flags & ~kKnownDriverFlags) != 0 || driver.reserved0 != 0 || driver.reserved1 != 0)
    return EINVAL;
  if (driver.cqe_size != 64 && driver.cqe_size != 128) return EINVAL;
  // Neither padding nor compression of entries nor time stamps are among this device's capabilities.
  constexpr std::uint32_t kAbsent =
      MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD | MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS;
  return (driver.flags & kAbsent) != 0 || driver.cqe_comp_en != 0 ? EOPNOTSUPP : 0;
}

/// Entries of the ring: the mlx5 driver keeps one more than asked for, rounded up.
int ring_size(const FileState& file, std::uint32_t entries, unsigned& log_entries) {
  if (entries == 0 || entries > file.limits().cq_entries) return EINVAL;
  const std::uint64_t ring = std::bit_ceil(std::uint64_t{entries} + 1);
  if (ring > file.limits().cq_entries) return EINVAL;
  log_entries = static_cast<unsigned>(std::countr_zero(ring));
  return 0;
}

/// Which page of registers arms the CQ: the one it names, or the context's first.
int choose_uar(const FileState& file, const mlx5_ib_create_cq& driver, std::uint32_t& uar) {
  if ((driver.flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) != 0) {
    uar = driver.uar_page_index;
    return 0;
  }
  if (file.static_uars.empty()) return EINVAL;
  uar = file.static_uars.front().uar;
  return 0;
}

/// Checks and locks a queue's buffer and its doorbell record.
int take_memory(FileState& file, CqObject& cq, UserAddress buffer, std::uint64_t bytes, UserAddress record) {
  if (const int error = check_pinnable(buffer, bytes, true); error != 0) return error;
  if (record % 8 != 0) return EINVAL;
  if (const int error = check_pinnable(record, 8, true); error != 0) return error;
  return cq.locked.lock(buffer, bytes, file.enforce_memlock);
}

int attach(FileState& file, const CqRequest& request, CqObject& cq) {
  if (request.vector >= kCompletionVectors) return EINVAL;
  if (request.channel >= 0) {
    cq.completions = file.find_channel(EventChannel::Purpose::completion, request.channel);
    if (!cq.completions) return EBADF;
  }
  cq.events = file.async_channel;
  cq.user_handle = request.user_handle;
  return 0;
}

int make_cq(FileState& file, const WriteCall& call, const CqRequest& request, CqObject& cq) {
  mlx5_ib_create_cq driver{};
  if (const int error = call.read_driver(driver, offsetof(mlx5_ib_create_cq, flags)); error != 0)
    return error;
  if (const int error = check(driver); error != 0) return error;
  if ((request.flags & ~std::uint32_t{IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN}) != 0) return EOPNOTSUPP;

  CqAttributes attributes;
  if (const int error = ring_size(file, request.entries, attributes.log_entries); error != 0) return error;
  if (const int error = attach(file, request, cq); error != 0) return error;
  if (const int error = choose_uar(file, driver, attributes.uar); error != 0) return error;
  const std::uint64_t bytes = std::uint64_t{driver.cqe_size} << attributes.log_entries;
  if (const int error = take_memory(file, cq, driver.buf_addr, bytes, driver.db_addr); error != 0)
    return error;

  attributes.device = file.device;

  attributes.owner = &file;
  attributes.buffer = reinterpret_cast<void*>(driver.buf_addr);
  attributes.entry_bytes = driver.cqe_size;
  attributes.doorbell_record = reinterpret_cast<void*>(driver.db_addr);
  attributes.ignore_overrun = (request.flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0;
  attributes.sink = &cq;
  const Result<std::uint32_t> number = file.nic.create_cq(attributes);
  if (!number) return number.error();
  cq.number = *number;
  cq.entries = (1u << attributes.log_entries) - 1;
  cq.entry_bytes = driver.cqe_size;
  return 0;
}

/// \param respond writes the core's response
template <class Respond>
int create(FileState& file, const WriteCall& call, const CqRequest& request, Respond respond) {
  auto owned = std::make_unique<CqObject>();
  CqObject& cq = *owned;
  if (const int error = make_cq(file, call, request, cq); error != 0) return error;
  file.objects.insert(std::move(owned));
  // The driver's response is the number alone for libraries that know no more.
  int error = EFAULT;
  if (call.driver_response.bytes >= sizeof cq.number) {
    mlx5_ib_create_cq_resp driver{};
    driver.cqn = cq.number;
    error = call.respond_driver_some(driver);
  }
  if (error == 0) error = respond(cq);
  return finish_creation(file, cq, error);
}

}  // namespace

int CqObject::release(FileState& file) {
  if (const int error = file.nic.destroy_cq(number); error != 0) return error;
  // The NIC reports nothing more now, so the counts are final.
  if (completions) completions_reported = completions->withdraw(this);
  if (events) events_reported = events->withdraw(this);
  return 0;
}

void CqObject::completion(std::uint32_t) {
  if (!completions) return;
  ib_uverbs_comp_event_desc record{};
  record.cq_handle = user_handle;
  completions->post(this, &record);
}

void CqObject::async(AsyncEvent event, std::uint32_t) {
  ib_uverbs_async_event_desc record{};
  record.element = user_handle;
  record.event_type = static_cast<std::uint32_t>(event);
  events->post(this, &record);
}

int create_comp_channel(FileState& file, const WriteCall& call) {
  ib_uverbs_create_comp_channel request{};
  if (const int error = call.read(request); error != 0) return error;
  int descriptor = -1;
  auto channel =
      EventChannel::create(EventChannel::Purpose::completion, sizeof(ib_uverbs_comp_event_desc), descriptor);
  if (!channel) return channel.error();
  ib_uverbs_create_comp_channel_resp response{};
  response.fd = static_cast<std::uint32_t>(descriptor);
  if (const int error = call.respond(response); error != 0) {
    ::syscall(SYS_close, descriptor);
    return error;
  }
  file.keep_channel(*channel);
  return 0;
}

int create_cq(FileState& file, const WriteCall& call) {
  ib_uverbs_create_cq request{};
  if (const int error = call.read(request); error != 0) return error;
  const CqRequest wanted{request.user_handle, request.cqe, request.comp_vector, request.comp_channel, 0};
  return create(file, call, wanted, [&call](const CqObject& cq) {
    ib_uverbs_create_cq_resp response{};
    response.cq_handle = cq.handle();
    response.cqe = cq.entries;
    return call.respond(response);
  });
}

int create_cq_extended(FileState& file, const WriteCall& call) {
  ib_uverbs_ex_create_cq request{};
  if (const int error = call.read(request); error != 0) return error;
  if (request.comp_mask != 0 || request.reserved != 0) return EINVAL;
  const CqRequest wanted{request.user_handle, request.cqe, request.comp_vector, request.comp_channel,
                         request.flags};
  return create(file, call, wanted, [&call](const CqObject& cq) {
    ib_uverbs_ex_create_cq_resp response{};
    response.base.cq_handle = cq.handle();
    response.base.cqe = cq.entries;
    response.response_length = sizeof response;
    return call.respond(response);
  });
}

int resize_cq(FileState& file, const WriteCall& call) {
  ib_uverbs_resize_cq request{};
  if (const int error = call.read(request); error != 0) return error;
  CqObject* cq = file.objects.find<CqObject>(request.cq_handle);
  if (cq == nullptr) return EINVAL;
  mlx5_ib_resize_cq driver{};
  if (const int error = call.read_driver(driver, sizeof driver); error != 0) return error;
  if (driver.reserved0 != 0 || driver.reserved1 != 0) return EINVAL;
  unsigned log_entries = 0;
  if (const int error = ring_size(file, request.cqe, log_entries); error != 0) return error;
  if (driver.cqe_size != cq->entry_bytes) return EINVAL;
  const std::uint64_t bytes = std::uint64_t{cq->entry_bytes} << log_entries;
  if (const int error = check_pinnable(driver.buf_addr, bytes, true); error != 0) return error;
  LockedPages locked;
  if (const int error = locked.lock(driver.buf_addr, bytes, file.enforce_memlock); error != 0) return error;
  if (const int error = file.nic.resize_cq(cq->number, reinterpret_cast<void*>(driver.buf_addr), log_entries);
      error != 0) {
    return error;
  }
  cq->locked = std::move(locked);
  cq->entries = (1u << log_entries) - 1;
  ib_uverbs_resize_cq_resp response{};
  response.cqe = cq->entries;
  return call.respond(response);
}

int destroy_cq(FileState& file, const WriteCall& call) {
  ib_uverbs_destroy_cq request{};
  if (const int error = call.read(request); error != 0) return error;
  const Result<std::unique_ptr<Object>> gone = file.objects.remove(file, ObjectType::cq, request.cq_handle);
  if (!gone) return gone.error();
  const auto& cq = static_cast<const CqObject&>(**gone);
  ib_uverbs_destroy_cq_resp response{};
  response.comp_events_reported = cq.completions_reported;
  response.async_events_reported = cq.events_reported;
  return call.respond(response);
}

}  // namespace belfry::softnic
