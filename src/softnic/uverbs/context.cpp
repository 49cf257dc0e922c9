// Opening a context: its registers and its channel of asynchronous events.

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "belfry/wire/doorbell.hpp"
#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/device_attributes.hpp"

namespace belfry::softnic {
namespace {

constexpr std::uint32_t kMaxStaticRegisters = 512;

int check(const mlx5_ib_alloc_ucontext_req_v2& request) {
  if ((request.flags & ~static_cast<std::uint32_t>(MLX5_IB_ALLOC_UCTX_DEVX)) != 0) return EOPNOTSUPP;
  if (request.comp_mask != 0 || request.reserved0 != 0 || request.reserved1 != 0 || request.reserved2 != 0) {
    return EOPNOTSUPP;
  }
  return 0;
}

/// Registers of a library that does not know dynamic UARs: pages 0, 1, ... of the old interface.
int allocate_static_registers(FileState& file, const mlx5_ib_alloc_ucontext_req_v2& request) {
  if (request.total_num_bfregs == 0) return EINVAL;
  if (request.total_num_bfregs > kMaxStaticRegisters) return ENOMEM;
  const std::uint32_t pages = (request.total_num_bfregs + 1) / wire::kUarRegistersPerPage;
  const std::uint32_t registers = pages * wire::kUarRegistersPerPage;
  if (request.num_low_latency_bfregs > registers - 1) return EINVAL;
  for (std::uint32_t i = 0; i < pages; ++i) {
    const Result<StaticUar> uar = file.attach_page(file.pages.at(i));
    if (!uar) return uar.error();
    file.static_uars.push_back(*uar);
  }
  file.static_registers = registers;
  return 0;
}

/// Version 1 names a QP by the application's index and not by its number.
std::uint8_t driver_cqe_version(const mlx5_ib_alloc_ucontext_req_v2& request) {
  return std::min<std::uint8_t>(request.max_cqe_version, 1);
}

mlx5_ib_alloc_ucontext_resp describe(const FileState& file, const mlx5_ib_alloc_ucontext_req_v2& request) {
  const Limits& limits = file.limits();
  mlx5_ib_alloc_ucontext_resp r{};
  r.qp_tab_size = 1u << log_of(limits.qps);
  r.bf_reg_size = kBlueFlameBytes;
  r.tot_bfregs = file.static_registers;
  r.cache_line_size = 64;
  r.max_sq_desc_sz = kMaxSendWqeBytes;
  r.max_rq_desc_sz = kMaxReceiveWqeBytes;
  r.max_send_wqebb = limits.send_queue_blocks;
  r.max_recv_wr = limits.receive_entries;
  r.num_ports = 1;
  r.cqe_version = driver_cqe_version(request);
  r.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
  r.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
  if ((request.lib_caps & MLX5_LIB_CAP_4K_UAR) != 0) {
    r.log_uar_size = 12;
    r.num_uars_per_page = 1;
  }
  return r;
}

void close_context(FileState& file, int async_descriptor) {
  for (const StaticUar& uar : file.static_uars) file.detach_page(uar);
  file.static_uars.clear();
  file.static_registers = 0;
  file.async_channel.reset();
  if (async_descriptor >= 0) ::syscall(SYS_close, async_descriptor);
}

int respond(FileState& file, const WriteCall& call, const mlx5_ib_alloc_ucontext_req_v2& request,
            int descriptor) {
  mlx5_ib_alloc_ucontext_resp driver = describe(file, request);
  driver.response_length = static_cast<std::uint32_t>(std::min(sizeof driver, call.driver_response.bytes));
  if (const int error = call.respond_driver_some(driver); error != 0) return error;
  ib_uverbs_get_context_resp response{};
  response.async_fd = static_cast<std::uint32_t>(descriptor);
  response.num_comp_vectors = kCompletionVectors;
  return call.respond(response);
}

}  // namespace

int get_context(FileState& file, const WriteCall& call) {
  if (file.has_context) return EINVAL;
  mlx5_ib_alloc_ucontext_req_v2 request{};
  // Version 0 of the request has two words; version 2 ends with its flags or anywhere later.
  const std::size_t given = call.driver_request.bytes;
  if (given != sizeof(mlx5_ib_alloc_ucontext_req) &&
      given < offsetof(mlx5_ib_alloc_ucontext_req_v2, max_cqe_version)) {
    return EINVAL;
  }
  if (const int error = call.read_driver(request, 0); error != 0) return error;
  if (const int error = check(request); error != 0) return error;

  int descriptor = -1;
  int error = 0;
  if ((request.lib_caps & MLX5_LIB_CAP_DYN_UAR) == 0) error = allocate_static_registers(file, request);
  if (error == 0) {
    auto channel = EventChannel::create(EventChannel::Purpose::asynchronous,
                                        sizeof(ib_uverbs_async_event_desc), descriptor);
    error = channel.error();
    if (channel) file.async_channel = *channel;
  }
  if (error == 0) error = respond(file, call, request, descriptor);
  if (error != 0) {
    close_context(file, descriptor);
    return error;
  }
  file.devx = (request.flags & MLX5_IB_ALLOC_UCTX_DEVX) != 0;
  file.cqe_version = driver_cqe_version(request);
  file.has_context = true;
  return 0;
}

}  // namespace belfry::softnic
