// Framing of write commands, after Linux' drivers/infiniband/core/uverbs_main.c: which command, are
// its sizes right, where are its parts. The errno of each check is that kernel's.

#include <rdma/ib_user_verbs.h>

#include <array>

#include "softnic/uverbs/commands.hpp"

namespace belfry::softnic {
namespace {

using Handler = int (*)(FileState&, const WriteCall&);

struct WriteCommand {
  Handler handler = nullptr;       ///< null: the device has no such operation
  std::size_t request_bytes = 0;   ///< at least, without header
  std::size_t response_bytes = 0;  ///< at least
  bool has_response = false;       ///< the request begins with the response's address
  bool has_driver_part = false;
};

template <class Request>
constexpr WriteCommand in(Handler handler) {
  return {handler, sizeof(Request), 0, false, false};
}
template <class Request, class Response>
constexpr WriteCommand in_out(Handler handler) {
  return {handler, sizeof(Request), sizeof(Response), true, false};
}
template <class Request, class Response>
constexpr WriteCommand in_out_driver(Handler handler) {
  return {handler, sizeof(Request), sizeof(Response), true, true};
}

constexpr std::size_t kWriteCommands = IB_USER_VERBS_CMD_OPEN_QP + 1;
constexpr std::size_t kExtendedCommands = IB_USER_VERBS_EX_CMD_MODIFY_CQ + 1;

constexpr std::array<WriteCommand, kWriteCommands> write_commands() {
  std::array<WriteCommand, kWriteCommands> t{};
  t[IB_USER_VERBS_CMD_GET_CONTEXT] =
      in_out_driver<ib_uverbs_get_context, ib_uverbs_get_context_resp>(get_context);
  t[IB_USER_VERBS_CMD_QUERY_DEVICE] =
      in_out<ib_uverbs_query_device, ib_uverbs_query_device_resp>(query_device);
  t[IB_USER_VERBS_CMD_QUERY_PORT] = in_out<ib_uverbs_query_port, ib_uverbs_query_port_resp>(query_port);
  t[IB_USER_VERBS_CMD_ALLOC_PD] = in_out_driver<ib_uverbs_alloc_pd, ib_uverbs_alloc_pd_resp>(alloc_pd);
  t[IB_USER_VERBS_CMD_DEALLOC_PD] = in<ib_uverbs_dealloc_pd>(dealloc_pd);
  t[IB_USER_VERBS_CMD_CREATE_AH] = in_out_driver<ib_uverbs_create_ah, ib_uverbs_create_ah_resp>(create_ah);
  t[IB_USER_VERBS_CMD_DESTROY_AH] = in<ib_uverbs_destroy_ah>(destroy_ah);
  t[IB_USER_VERBS_CMD_REG_MR] = in_out_driver<ib_uverbs_reg_mr, ib_uverbs_reg_mr_resp>(reg_mr);
  t[IB_USER_VERBS_CMD_REREG_MR] = in_out_driver<ib_uverbs_rereg_mr, ib_uverbs_rereg_mr_resp>(rereg_mr);
  t[IB_USER_VERBS_CMD_DEREG_MR] = in<ib_uverbs_dereg_mr>(dereg_mr);
  t[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] =
      in_out<ib_uverbs_create_comp_channel, ib_uverbs_create_comp_channel_resp>(create_comp_channel);
  t[IB_USER_VERBS_CMD_CREATE_CQ] = in_out_driver<ib_uverbs_create_cq, ib_uverbs_create_cq_resp>(create_cq);
  t[IB_USER_VERBS_CMD_RESIZE_CQ] = in_out_driver<ib_uverbs_resize_cq, ib_uverbs_resize_cq_resp>(resize_cq);
  t[IB_USER_VERBS_CMD_DESTROY_CQ] = in_out<ib_uverbs_destroy_cq, ib_uverbs_destroy_cq_resp>(destroy_cq);
  t[IB_USER_VERBS_CMD_CREATE_QP] = in_out_driver<ib_uverbs_create_qp, ib_uverbs_create_qp_resp>(create_qp);
  t[IB_USER_VERBS_CMD_QUERY_QP] = in_out<ib_uverbs_query_qp, ib_uverbs_query_qp_resp>(query_qp);
  t[IB_USER_VERBS_CMD_MODIFY_QP] = in<ib_uverbs_modify_qp>(modify_qp);
  t[IB_USER_VERBS_CMD_DESTROY_QP] = in_out<ib_uverbs_destroy_qp, ib_uverbs_destroy_qp_resp>(destroy_qp);
  return t;
}

// The sizes name the last field that a request or a response must have.
constexpr std::array<WriteCommand, kExtendedCommands> extended_commands() {
  std::array<WriteCommand, kExtendedCommands> t{};
  t[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] = {query_device_extended, sizeof(ib_uverbs_ex_query_device),
                                          offsetof(ib_uverbs_ex_query_device_resp, odp_caps)};
  t[IB_USER_VERBS_EX_CMD_CREATE_CQ] = {create_cq_extended, sizeof(ib_uverbs_ex_create_cq),
                                       sizeof(ib_uverbs_ex_create_cq_resp)};
  t[IB_USER_VERBS_EX_CMD_CREATE_QP] = {create_qp_extended,
                                       offsetof(ib_uverbs_ex_create_qp, rwq_ind_tbl_handle),
                                       sizeof(ib_uverbs_ex_create_qp_resp)};
  t[IB_USER_VERBS_EX_CMD_MODIFY_QP] = {modify_qp_extended, offsetof(ib_uverbs_ex_modify_qp, rate_limit),
                                       sizeof(ib_uverbs_ex_modify_qp_resp)};
  return t;
}

constexpr auto kWriteTable = write_commands();
constexpr auto kExtendedTable = extended_commands();

int run(FileState& file, const WriteCommand& command, const WriteCall& call) {
  const std::lock_guard lock(file.mutex);
  if (!file.has_context && command.handler != get_context) return EINVAL;
  return command.handler(file, call);
}

int run_plain(FileState& file, const ib_uverbs_cmd_hdr& header, UserAddress at, std::size_t bytes) {
  if (header.command >= kWriteTable.size()) return EINVAL;
  const WriteCommand& command = kWriteTable[header.command];
  std::size_t in_bytes = std::size_t{header.in_words} * 4;
  if (in_bytes != bytes) return EINVAL;
  if (command.handler == nullptr) return EOPNOTSUPP;
  if (bytes < sizeof header + command.request_bytes) {
    // rdma-core 18 and 19 send DESTROY_CQ 8 B short, and kernels put up with it.
    if (header.command != IB_USER_VERBS_CMD_DESTROY_CQ || bytes != 16) return ENOSPC;
    in_bytes = sizeof header + command.request_bytes;
  }
  const std::size_t out_bytes = std::size_t{header.out_words} * 4;
  if (out_bytes < command.response_bytes) return ENOSPC;

  WriteCall call;
  call.request = {at + sizeof header, in_bytes - sizeof header};
  if (command.has_driver_part) {
    call.request.bytes = command.request_bytes;
    call.driver_request = {at + sizeof header + command.request_bytes,
                           bytes - sizeof header - command.request_bytes};
  }
  if (command.has_response) {
    UserAddress response = 0;
    if (const int error = copy_in(&response, call.request.address, sizeof response); error != 0) return error;
    call.response = {response, out_bytes};
    if (command.has_driver_part) {
      call.response.bytes = command.response_bytes;
      call.driver_response = {response + command.response_bytes, out_bytes - command.response_bytes};
    }
  }
  return run(file, command, call);
}

int run_extended(FileState& file, const ib_uverbs_cmd_hdr& header, UserAddress at, std::size_t bytes) {
  const std::uint32_t number = header.command & IB_USER_VERBS_CMD_COMMAND_MASK;
  if (number >= kExtendedTable.size() || kExtendedTable[number].handler == nullptr) return EOPNOTSUPP;
  const WriteCommand& command = kExtendedTable[number];
  ib_uverbs_ex_cmd_hdr extension{};
  constexpr std::size_t kHeaders = sizeof header + sizeof extension;
  if (bytes < kHeaders) return EINVAL;
  if (const int error = copy_in(&extension, at + sizeof header, sizeof extension); error != 0) return error;

  const std::size_t in_bytes = std::size_t{header.in_words} * 8;
  const std::size_t driver_in_bytes = std::size_t{extension.provider_in_words} * 8;
  const std::size_t out_bytes = std::size_t{header.out_words} * 8;
  const std::size_t driver_out_bytes = std::size_t{extension.provider_out_words} * 8;
  if (in_bytes + driver_in_bytes != bytes - kHeaders) return EINVAL;
  if (in_bytes < command.request_bytes) return ENOSPC;
  if (extension.cmd_hdr_reserved != 0) return EINVAL;
  if ((extension.response != 0) != (out_bytes + driver_out_bytes != 0)) return EINVAL;
  if (out_bytes < command.response_bytes) return ENOSPC;

  WriteCall call;
  call.request = {at + kHeaders, in_bytes};
  call.driver_request = {at + kHeaders + in_bytes, driver_in_bytes};
  call.response = {extension.response, out_bytes};
  call.driver_response = {extension.response + out_bytes, driver_out_bytes};
  return run(file, command, call);
}

}  // namespace

int run_write(FileState& file, UserAddress at, std::size_t bytes) {
  ib_uverbs_cmd_hdr header{};
  if (bytes < sizeof header) return EINVAL;
  if (const int error = copy_in(&header, at, sizeof header); error != 0) return error;
  if ((header.command & ~(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK)) != 0)
    return EINVAL;
  return (header.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0 ? run_extended(file, header, at, bytes)
                                                                 : run_plain(file, header, at, bytes);
}

int WriteCall::copy_request(const UserPart& part, void* to, std::size_t bytes, bool strict) {
  if (const int error = copy_in(to, part.address, std::min(bytes, part.bytes)); error != 0) return error;
  if (part.bytes < bytes) {
    std::fill_n(static_cast<std::byte*>(to) + part.bytes, bytes - part.bytes, std::byte{0});
  } else if (strict && part.bytes > bytes) {
    return check_cleared(part.address + bytes, part.bytes - bytes);
  }
  return 0;
}

int WriteCall::copy_response(const UserPart& part, const void* from, std::size_t bytes) {
  if (const int error = copy_out(part.address, from, std::min(bytes, part.bytes)); error != 0) return error;
  return part.bytes > bytes ? clear_out(part.address + bytes, part.bytes - bytes) : 0;
}

}  // namespace belfry::softnic
