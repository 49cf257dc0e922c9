#pragma once
/// \file
/// What the host library throws: an error with a kind to branch on, the errno behind it, and a remedy.
///
/// Setup throws; the data path (post.hpp, completion.hpp) returns statuses and never throws.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace belfry::host {

enum class ErrorKind : std::uint8_t {
  no_device,      ///< no RDMA device, or none that fits the request
  permission,     ///< the device exists, and this process may not use it
  locked_memory,  ///< RLIMIT_MEMLOCK does not allow to pin that much memory
  unsupported,    ///< the device, driver or kernel cannot do it
  not_reachable,  ///< a peer is gone, refuses, or lies on a network that this one does not reach
  timed_out,      ///< a deadline passed
  bad_argument,   ///< the caller's value is out of range or contradicts another
  system,         ///< any other failure of the system
  completion,     ///< an operation completed in error
};

/// The kind's name as it is spelled in the enum.
std::string_view to_string(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  /// \param message what failed, with the values involved
  /// \param remedy  what to do about it; may be empty where nothing is known
  /// \param code    positive errno, or 0 where none is behind it
  /// what() holds all three.
  Error(ErrorKind kind, std::string message, std::string remedy, int code = 0);

  ErrorKind kind() const noexcept { return kind_; }
  int code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& remedy() const noexcept { return remedy_; }

 private:
  ErrorKind kind_;
  int code_;
  std::string message_;
  std::string remedy_;
};

/// A call of libibverbs or mlx5dv, as error messages name it.
enum class VerbsCall : std::uint8_t {
  get_device_list,
  open_device,
  query_device,
  query_port,
  query_gid,
  alloc_pd,
  reg_mr,
  create_cq,
  create_qp,
  create_ah,
  modify_qp_to_init,
  modify_qp_to_rtr,
  modify_qp_to_rts,
  modify_qp_to_error,
  devx_query_caps,
  devx_query_eqn,
  devx_alloc_uar,
  devx_register_umem,
  devx_create_cq,
  devx_create_qp,
  devx_modify_qp,
  init_object,
};

/// The function behind a call, for messages: "ibv_reg_mr", "mlx5dv_devx_obj_create(CREATE_QP)".
std::string_view to_string(VerbsCall call);

/// RLIMIT_MEMLOCK of this process, bytes.
struct LockedMemoryLimit {
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  std::uint64_t soft = kUnlimited;
  std::uint64_t hard = kUnlimited;

  static LockedMemoryLimit of_this_process();
};

/// "64 KiB", "1.5 MiB", "1000 B", "unlimited": exact in the unit, or with one decimal.
std::string format_bytes(std::uint64_t bytes);

/// The error for a failed call.
/// \param code    positive errno
/// \param subject what it was about ("device mlx5_0", "region of 1 MiB"); may be empty
/// \param bytes   memory that the call had to pin, 0 where unknown
Error verbs_error(VerbsCall call, int code, std::string_view subject, std::uint64_t bytes = 0,
                  const LockedMemoryLimit& limit = LockedMemoryLimit::of_this_process());

/// The error for a DEVX command.
/// \param code     positive errno; EREMOTEIO: the firmware refused, and the next two say why
/// \param status   byte 0 of the output mailbox
/// \param syndrome bytes 4-7 of the output mailbox
Error devx_error(VerbsCall call, int code, std::uint8_t status, std::uint32_t syndrome,
                 std::string_view subject);

/// The error where no RDMA device is there at all, or none of the kind asked for.
Error no_device_error(std::string_view message);

}  // namespace belfry::host
