// Creation and destruction of queue pairs.

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "belfry/wire/doorbell.hpp"
#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/device_attributes.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {
namespace {

constexpr std::uint32_t kKnownDriverFlags =
    MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_UAR_PAGE_INDEX;
constexpr std::uint32_t kNoRegister = 1u << 31;  // MLX5_IB_INVALID_BFREG
constexpr std::uint32_t kDefaultUserIndex = 0xffffff;
constexpr std::uint32_t kMaxReceiveShift = 9;  // kMaxReceiveWqeBytes
constexpr std::uint32_t kRegistersPerUarOfLibrary = 4;
constexpr std::uint32_t kKnownCreateFlags =
    IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_UVERBS_QP_CREATE_SCATTER_FCS |
    IB_UVERBS_QP_CREATE_CVLAN_STRIPPING | IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING;

/// What both forms of the command ask for.
struct QpRequest {
  std::uint64_t user_handle = 0;
  std::uint32_t pd = 0;
  std::uint32_t send_cq = 0;
  std::uint32_t receive_cq = 0;
  QpCapacity capacity;
  std::uint8_t type = 0;
  bool signal_all = false;
  bool shared_receive = false;
};

template <class Request>
QpRequest common_part(const Request& r) {
  QpRequest q;
  q.user_handle = r.user_handle;
  q.pd = r.pd_handle;
  q.send_cq = r.send_cq_handle;
  q.receive_cq = r.recv_cq_handle;
  q.capacity = {r.max_send_wr, r.max_recv_wr, r.max_send_sge, r.max_recv_sge, r.max_inline_data};
  q.type = r.qp_type;
  q.signal_all = r.sq_sig_all != 0;
  q.shared_receive = r.is_srq != 0;
  return q;
}

int check_type(std::uint8_t type) {
  switch (type) {
    case IB_UVERBS_QPT_RC:
      return 0;
    case IB_UVERBS_QPT_UC:
    case IB_UVERBS_QPT_UD:
    case IB_UVERBS_QPT_RAW_PACKET:
    case IB_UVERBS_QPT_XRC_INI:
    case IB_UVERBS_QPT_XRC_TGT:
    case IB_UVERBS_QPT_DRIVER:
      return EOPNOTSUPP;
    default:
      return EINVAL;
  }
}

int check_capacity(const FileState& file, const QpCapacity& capacity) {
  const std::uint32_t most = max_queue_entries(file.limits());
  const bool fits = capacity.send_requests <= most && capacity.receive_requests <= most &&
                    capacity.send_sge <= kMaxSge && capacity.receive_sge <= kMaxReceiveSge &&
                    capacity.inline_bytes <= kMaxSendWqeBytes;
  return fits ? 0 : EINVAL;
}

/// Lays the two queues out in the application's buffer: the receive queue first.
int lay_out(FileState& file, const mlx5_ib_create_qp& driver, QpObject& qp, QpAttributes& attributes) {
  if (driver.sq_wqe_count > file.limits().send_queue_blocks ||
      driver.rq_wqe_count > file.limits().receive_entries) {
    return EINVAL;
  }
  if (driver.rq_wqe_count != 0 && (driver.rq_wqe_shift < 4 || driver.rq_wqe_shift > kMaxReceiveShift))
    return EINVAL;
  const std::uint64_t receive_bytes =
      driver.rq_wqe_count == 0 ? 0 : std::uint64_t{driver.rq_wqe_count} << driver.rq_wqe_shift;
  const std::uint64_t bytes = receive_bytes + std::uint64_t{driver.sq_wqe_count} * wire::kBlockBytes;
  if (bytes != 0) {
    if (const int error = check_pinnable(driver.buf_addr, bytes, true); error != 0) return error;
    if (const int error = qp.locked.lock(driver.buf_addr, bytes, file.enforce_memlock); error != 0)
      return error;
  }
  if (driver.db_addr % sizeof(wire::QpDoorbellRecord) != 0) return EINVAL;
  if (const int error = check_pinnable(driver.db_addr, sizeof(wire::QpDoorbellRecord), true); error != 0)
    return error;

  attributes.send_queue = reinterpret_cast<void*>(driver.buf_addr + receive_bytes);
  attributes.send_blocks = driver.sq_wqe_count;
  attributes.receive_queue = reinterpret_cast<void*>(driver.buf_addr);
  attributes.receive_entries = driver.rq_wqe_count;
  attributes.receive_stride = driver.rq_wqe_count == 0 ? 0 : 1u << driver.rq_wqe_shift;
  attributes.doorbell_record = reinterpret_cast<void*>(driver.db_addr);
  return 0;
}

/// The page that the QP rings: the one it names, or one of the context's, dealt out in turn. The
/// context's first register is left to whoever finds no other.
int choose_uar(FileState& file, const mlx5_ib_create_qp& driver, std::uint32_t& uar,
               std::uint32_t& register_index) {
  if ((driver.flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) != 0) {
    uar = driver.bfreg_index;
    register_index = kNoRegister;
    return 0;
  }
  if (file.static_registers == 0) return EINVAL;
  file.next_static_register = file.next_static_register % (file.static_registers - 1) + 1;
  const std::uint32_t chosen = file.next_static_register;
  const std::uint32_t page = chosen / wire::kUarRegistersPerPage;
  uar = file.static_uars[page].uar;
  register_index = page * kRegistersPerUarOfLibrary + chosen % wire::kUarRegistersPerPage;
  return 0;
}

int choose_user_index(const FileState& file, const mlx5_ib_create_qp& driver, std::uint32_t& index) {
  index = file.cqe_version == 0 ? kDefaultUserIndex : driver.uidx;
  return index <= kDefaultUserIndex ? 0 : EINVAL;
}

int read_driver_part(const WriteCall& call, mlx5_ib_create_qp& driver) {
  const std::size_t least = offsetof(mlx5_ib_create_qp, ece_options);
  if (const int error = call.read_driver(driver, least, true); error != 0) return error;
  if ((driver.flags & ~kKnownDriverFlags) != 0) return EINVAL;
  return 0;
}

int make_qp(FileState& file, const WriteCall& call, const QpRequest& request, QpObject& qp,
            std::uint32_t& register_index) {
  if (const int error = check_type(request.type); error != 0) return error;
  PdObject* pd = file.objects.find<PdObject>(request.pd);
  CqObject* send_cq = file.objects.find<CqObject>(request.send_cq);
  CqObject* receive_cq = file.objects.find<CqObject>(request.receive_cq);
  if (pd == nullptr || send_cq == nullptr || receive_cq == nullptr || request.shared_receive) return EINVAL;
  if (const int error = check_capacity(file, request.capacity); error != 0) return error;
  mlx5_ib_create_qp driver{};
  if (const int error = read_driver_part(call, driver); error != 0) return error;

  QpAttributes attributes;
  if (const int error = choose_uar(file, driver, attributes.uar, register_index); error != 0) return error;
  if (const int error = choose_user_index(file, driver, attributes.user_index); error != 0) return error;
  if (const int error = lay_out(file, driver, qp, attributes); error != 0) return error;
  attributes.device = file.device;
  attributes.owner = &file;
  attributes.pd = pd->number;
  attributes.send_cq = send_cq->number;
  attributes.receive_cq = receive_cq->number;
  attributes.sink = &qp;
  qp.events = file.async_channel;
  qp.user_handle = request.user_handle;
  const Result<std::uint32_t> number = file.nic.create_qp(attributes);
  if (!number) return number.error();
  qp.number = *number;
  qp.capacity = request.capacity;
  qp.signal_all = request.signal_all;
  qp.hold(*pd);
  qp.hold(*send_cq);
  qp.hold(*receive_cq);
  return 0;
}

ib_uverbs_create_qp_resp describe(const QpObject& qp) {
  ib_uverbs_create_qp_resp r{};
  r.qp_handle = qp.handle();
  r.qpn = qp.number;
  r.max_send_wr = qp.capacity.send_requests;
  r.max_recv_wr = qp.capacity.receive_requests;
  r.max_send_sge = qp.capacity.send_sge;
  r.max_recv_sge = qp.capacity.receive_sge;
  r.max_inline_data = qp.capacity.inline_bytes;
  return r;
}

/// \param respond writes the core's response
template <class Respond>
int create(FileState& file, const WriteCall& call, const QpRequest& request, Respond respond) {
  auto owned = std::make_unique<QpObject>();
  QpObject& qp = *owned;
  mlx5_ib_create_qp_resp driver{};
  if (const int error = make_qp(file, call, request, qp, driver.bfreg_index); error != 0) return error;
  file.objects.insert(std::move(owned));
  int error = call.respond_driver_some(driver);
  if (error == 0) error = respond(qp);
  return finish_creation(file, qp, error);
}

}  // namespace

int QpObject::release(FileState& file) {
  if (const int error = file.nic.destroy_qp(number); error != 0) return error;
  if (events) events_reported = events->withdraw(this);  // the NIC reports nothing more now
  return 0;
}

void QpObject::async(AsyncEvent event, std::uint32_t) {
  ib_uverbs_async_event_desc record{};
  record.element = user_handle;
  record.event_type = static_cast<std::uint32_t>(event);
  events->post(this, &record);
}

int create_qp(FileState& file, const WriteCall& call) {
  ib_uverbs_create_qp request{};
  if (const int error = call.read(request); error != 0) return error;
  return create(file, call, common_part(request),
                [&call](const QpObject& qp) { return call.respond(describe(qp)); });
}

int create_qp_extended(FileState& file, const WriteCall& call) {
  ib_uverbs_ex_create_qp request{};
  if (const int error = call.read(request); error != 0) return error;
  if ((request.comp_mask & ~std::uint32_t{IB_UVERBS_CREATE_QP_SUP_COMP_MASK}) != 0 || request.reserved != 0)
    return EINVAL;
  if ((request.create_flags & ~kKnownCreateFlags) != 0) return EINVAL;
  if (request.comp_mask != 0 || request.create_flags != 0) return EOPNOTSUPP;
  return create(file, call, common_part(request), [&call](const QpObject& qp) {
    ib_uverbs_ex_create_qp_resp response{};
    response.base = describe(qp);
    response.response_length = sizeof response;
    return call.respond(response);
  });
}

int destroy_qp(FileState& file, const WriteCall& call) {
  ib_uverbs_destroy_qp request{};
  if (const int error = call.read(request); error != 0) return error;
  const Result<std::unique_ptr<Object>> gone = file.objects.remove(file, ObjectType::qp, request.qp_handle);
  if (!gone) return gone.error();
  ib_uverbs_destroy_qp_resp response{};
  response.events_reported = static_cast<const QpObject&>(**gone).events_reported;
  return call.respond(response);
}

}  // namespace belfry::softnic
