// DEVX beside its objects: queries of the device, register pages and event queues by number.

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <array>
#include <cerrno>

#include "belfry/wire/doorbell.hpp"
#include "softnic/uverbs/devx_objects.hpp"
#include "softnic/uverbs/devx_opcodes.hpp"

namespace belfry::softnic {

namespace prm = wire::prm;

namespace {

/// Number of the event queue behind completion vector 0. No queue is visible; programs name one.
constexpr std::uint32_t kFirstEventQueue = 8;

struct DeviceCommand {
  prm::Opcode opcode;
  std::size_t out_bytes;  ///< at least
  PrmOutcome (*run)(FileState&, Mailbox&);
};

constexpr std::size_t kHeadBytes = prm::CommandOut::kBytes;

constexpr std::array kDeviceCommands{
    DeviceCommand{prm::Opcode::query_hca_cap, kHeadBytes, devx_query_hca_cap},
    DeviceCommand{prm::Opcode::query_adapter, kHeadBytes, devx_query_adapter},
    DeviceCommand{prm::Opcode::query_issi, kHeadBytes, devx_query_issi},
    DeviceCommand{prm::Opcode::query_nic_vport_context, kHeadBytes, devx_query_nic_vport_context},
    DeviceCommand{prm::Opcode::query_hca_vport_context, kHeadBytes, devx_query_hca_vport_context},
    DeviceCommand{prm::Opcode::query_roce_address, kHeadBytes, devx_query_roce_address},
};

constexpr std::array kOtherAttributes{
    in_at_least(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, prm::CommandIn::kBytes),
    out_at_least(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, kHeadBytes),
};

int other(FileState& file, IoctlCall& call) {
  Mailbox mailbox;
  constexpr std::uint16_t kOut = MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT;
  if (const int error = mailbox.read(call, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, kOut); error != 0) return error;
  if (!file.devx && !open_to_everyone(mailbox.opcode())) return EINVAL;
  for (const DeviceCommand& command : kDeviceCommands) {
    if (command.opcode == mailbox.opcode()) return mailbox.answer(call, kOut, command.run(file, mailbox));
  }
  if (!queries_device(mailbox.opcode())) return EINVAL;
  return mailbox.answer(call, kOut, {prm::Status::bad_opcode, DevxSyndrome::unknown_command});
}

constexpr std::array kUarAttributes{
    in_attribute(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, 4),
    out_attribute(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, 4),
};

/// The page id of a register that came with the context.
int query_uar(FileState& file, IoctlCall& call) {
  std::uint64_t index = 0;
  if (const int error = call.read_number(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, index); error != 0)
    return error;
  if (index >= file.static_registers) return EINVAL;
  return call.write(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX,
                    file.static_uars[index / wire::kUarRegistersPerPage].uar);
}

constexpr std::array kEqnAttributes{
    in_attribute(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 4),
    out_attribute(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4),
};

int query_eqn(FileState&, IoctlCall& call) {
  std::uint64_t vector = 0;
  if (const int error = call.read_number(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, vector); error != 0)
    return error;
  if (vector >= kCompletionVectors) return ENOENT;
  return call.write(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN,
                    kFirstEventQueue + static_cast<std::uint32_t>(vector));
}

constexpr std::array kPdAttributes{
    handle_attribute(MLX5_IB_ATTR_QUERY_PD_HANDLE),
    out_attribute(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4),
};

int query_pd(FileState& file, IoctlCall& call) {
  const std::uint32_t handle = call.handle(MLX5_IB_ATTR_QUERY_PD_HANDLE);
  const PdObject* pd = file.objects.find<PdObject>(handle);
  if (pd == nullptr) return file.objects.find(handle) == nullptr ? ENOENT : EINVAL;
  return call.write(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, pd->number);
}

}  // namespace

std::span<const IoctlMethod> devx_methods() {
  static constexpr std::array kMethods{
      IoctlMethod{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, kOtherAttributes, other},
      IoctlMethod{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, kUarAttributes, query_uar},
      IoctlMethod{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, kEqnAttributes, query_eqn},
      IoctlMethod{UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, kPdAttributes, query_pd},
  };
  return kMethods;
}

}  // namespace belfry::softnic
