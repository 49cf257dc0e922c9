// Which errno of which call means what, and what to do about it.

#include <cerrno>
#include <cstdio>

#include "belfry/host/errors.hpp"

namespace belfry::host {

namespace {

constexpr const char* kSoftwareNic =
    "Without RDMA hardware, run under the software NIC: `belfry softnic -- COMMAND`, or `--nic soft`";

struct CallFacts {
  std::string_view name;
  bool pins_memory;  ///< ENOMEM can mean RLIMIT_MEMLOCK
  bool devx;
};

CallFacts facts_of(VerbsCall call) {
  switch (call) {
    case VerbsCall::get_device_list:
      return {"ibv_get_device_list", false, false};
    case VerbsCall::open_device:
      return {"ibv_open_device", false, false};
    case VerbsCall::query_device:
      return {"ibv_query_device", false, false};
    case VerbsCall::query_port:
      return {"ibv_query_port", false, false};
    case VerbsCall::query_gid:
      return {"ibv_query_gid", false, false};
    case VerbsCall::alloc_pd:
      return {"ibv_alloc_pd", false, false};
    case VerbsCall::reg_mr:
      return {"ibv_reg_mr", true, false};
    case VerbsCall::create_cq:
      return {"ibv_create_cq", true, false};
    case VerbsCall::create_qp:
      return {"ibv_create_qp", true, false};
    case VerbsCall::create_ah:
      return {"ibv_create_ah", false, false};
    case VerbsCall::modify_qp_to_init:
      return {"ibv_modify_qp(INIT)", false, false};
    case VerbsCall::modify_qp_to_rtr:
      return {"ibv_modify_qp(RTR)", false, false};
    case VerbsCall::modify_qp_to_rts:
      return {"ibv_modify_qp(RTS)", false, false};
    case VerbsCall::modify_qp_to_error:
      return {"ibv_modify_qp(ERR)", false, false};
    case VerbsCall::devx_query_caps:
      return {"mlx5dv_devx_general_cmd(QUERY_HCA_CAP)", false, true};
    case VerbsCall::devx_query_eqn:
      return {"mlx5dv_devx_query_eqn", false, true};
    case VerbsCall::devx_alloc_uar:
      return {"mlx5dv_devx_alloc_uar", false, true};
    case VerbsCall::devx_register_umem:
      return {"mlx5dv_devx_umem_reg", true, true};
    case VerbsCall::devx_create_cq:
      return {"mlx5dv_devx_obj_create(CREATE_CQ)", false, true};
    case VerbsCall::devx_create_qp:
      return {"mlx5dv_devx_obj_create(CREATE_QP)", false, true};
    case VerbsCall::devx_modify_qp:
      return {"mlx5dv_devx_obj_modify(QP)", false, true};
    case VerbsCall::init_object:
      return {"mlx5dv_init_obj", false, true};
  }
  return {"verbs call", false, false};
}

std::string failed(std::string_view name, std::string_view subject) {
  std::string text(name);
  text += " failed";
  if (!subject.empty()) text.append(" for ").append(subject);
  return text;
}

/// The limit is the likely cause where it is finite and the request does not fit easily below it:
/// earlier registrations count too, so anything above an eighth of it is suspect.
bool limit_is_suspect(const LockedMemoryLimit& limit, std::uint64_t bytes) {
  return limit.soft != LockedMemoryLimit::kUnlimited && (bytes == 0 || bytes >= limit.soft / 8);
}

Error locked_memory_error(std::string_view name, int code, std::string_view subject, std::uint64_t bytes,
                          const LockedMemoryLimit& limit) {
  std::string message = failed(name, subject);
  if (bytes != 0) message += " (" + format_bytes(bytes) + " to pin)";
  message += ": the locked-memory limit RLIMIT_MEMLOCK is " + format_bytes(limit.soft) + " (hard limit " +
             format_bytes(limit.hard) + ")";
  return {ErrorKind::locked_memory, message,
          "Raise it: `ulimit -l unlimited` in the shell that starts the program; for good, `* - memlock "
          "unlimited` in /etc/security/limits.conf and a new login (systemd: LimitMEMLOCK=infinity); in a "
          "container, `docker run --ulimit memlock=-1`",
          code};
}

Error permission_error(std::string_view name, int code, std::string_view subject, bool devx) {
  if (devx) {
    return {ErrorKind::permission, failed(name, subject),
            "The driver lets DEVX objects be made only by a process that may: run with CAP_NET_RAW (docker "
            "run --cap-add NET_RAW), or use verbs queues",
            code};
  }
  return {ErrorKind::permission, failed(name, subject),
          "This user may not open the device files: check the permissions of /dev/infiniband/uverbs* (the "
          "rdma group, or udev rules of rdma-core); in a container pass them in with `docker run --device "
          "/dev/infiniband`",
          code};
}

Error unsupported_error(std::string_view name, int code, std::string_view subject, bool devx) {
  if (devx) {
    return {
        ErrorKind::unsupported, failed(name, subject),
        "DEVX is not available here: it needs an mlx5 device (ConnectX-4 or newer), the mlx5_ib driver and "
        "a libmlx5 built with it. Use verbs queues, or the software NIC: `belfry softnic -- COMMAND`",
        code};
  }
  return {ErrorKind::unsupported, failed(name, subject),
          "The device or its driver does not offer this; compare its limits with `ibv_devinfo -v`", code};
}

Error unreachable_error(std::string_view name, int code, std::string_view subject) {
  return {ErrorKind::not_reachable, failed(name, subject),
          "The peer's address was not resolved through the chosen GID: check that both ends use GIDs of one "
          "network (BELFRY_GID_INDEX chooses another) and that `ping` reaches the peer from that interface",
          code};
}

bool is_modify(VerbsCall call) {
  return call == VerbsCall::modify_qp_to_init || call == VerbsCall::modify_qp_to_rtr ||
         call == VerbsCall::modify_qp_to_rts || call == VerbsCall::create_ah;
}

}  // namespace

std::string_view to_string(VerbsCall call) { return facts_of(call).name; }

Error verbs_error(VerbsCall call, int code, std::string_view subject, std::uint64_t bytes,
                  const LockedMemoryLimit& limit) {
  const CallFacts facts = facts_of(call);
  switch (code) {
    case ENOMEM:
    case EAGAIN:
      if (facts.pins_memory && limit_is_suspect(limit, bytes)) {
        return locked_memory_error(facts.name, code, subject, bytes, limit);
      }
      return {ErrorKind::system, failed(facts.name, subject),
              "The system or the device ran out of memory or objects; ask for fewer or smaller ones", code};
    case EPERM:
    case EACCES:
      return permission_error(facts.name, code, subject, facts.devx);
    case EOPNOTSUPP:
    case ENOSYS:
    case EPROTONOSUPPORT:
      return unsupported_error(facts.name, code, subject, facts.devx);
    case ENODEV:
    case ENXIO:
      return {ErrorKind::no_device, failed(facts.name, subject),
              std::string("The device is gone or was reset. ") + kSoftwareNic, code};
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      if (is_modify(call)) return unreachable_error(facts.name, code, subject);
      break;
    case EFAULT:
      if (call == VerbsCall::reg_mr) {
        return {ErrorKind::bad_argument, failed(facts.name, subject),
                "The range is not mapped, or not writable while the access rights ask for writes", code};
      }
      break;
    case EINVAL:
      return {ErrorKind::bad_argument, failed(facts.name, subject),
              "A value is outside what the device takes; compare its limits with `ibv_devinfo -v`", code};
    default:
      break;
  }
  return {ErrorKind::system, failed(facts.name, subject), "The kernel log (dmesg) may say more", code};
}

Error devx_error(VerbsCall call, int code, std::uint8_t status, std::uint32_t syndrome,
                 std::string_view subject) {
  if (status == 0) return verbs_error(call, code, subject);
  char detail[64];
  std::snprintf(detail, sizeof detail, " (firmware status 0x%02x, syndrome 0x%08x)", status, syndrome);
  return {ErrorKind::unsupported, failed(to_string(call), subject) + detail,
          "The firmware refused the command: the mailbox asks for something that this device's capabilities "
          "do not allow. Use verbs queues, or update the firmware",
          code};
}

Error no_device_error(std::string_view message) {
  return {ErrorKind::no_device, std::string(message), kSoftwareNic};
}

}  // namespace belfry::host
