// Life of DEVX objects: create, destroy, modify and query by mailbox.

#include "softnic/uverbs/devx_objects.hpp"

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <array>
#include <cerrno>

#include "softnic/uverbs/devx_opcodes.hpp"

namespace belfry::softnic {

namespace prm = wire::prm;

namespace {

constexpr std::uint16_t kHeadBytes = prm::CommandIn::kBytes;

struct CreateCommand {
  prm::Opcode opcode;
  DevxKind kind;
  std::size_t in_bytes;  ///< as far as a field that is looked at
  PrmOutcome (*run)(FileState&, Mailbox&, DevxObject&);
};

constexpr std::array kCreateCommands{
    CreateCommand{prm::Opcode::alloc_pd, DevxKind::pd, kHeadBytes, devx_alloc_pd},
    CreateCommand{prm::Opcode::create_mkey, DevxKind::mkey, prm::CreateMkeyIn::mkey_umem_offset::kEnd / 8,
                  devx_create_mkey},
    CreateCommand{prm::Opcode::create_cq, DevxKind::cq, prm::CreateCqIn::cq_umem_id::kEnd / 8,
                  devx_create_cq},
    CreateCommand{prm::Opcode::create_qp, DevxKind::qp, prm::CreateQpIn::wq_umem_id::kEnd / 8,
                  devx_create_qp},
};

struct ObjectCommand {
  prm::Opcode opcode;
  DevxKind kind;
  bool modifies;
  std::size_t in_bytes;
  std::size_t out_bytes;
  PrmOutcome (*run)(FileState&, Mailbox&, std::uint32_t number);
};

constexpr std::size_t kModifyQpBytes = prm::ModifyQpIn::qpc::kEnd / 8;
constexpr std::size_t kQueryQpBytes = prm::QueryQpOut::qpc::kEnd / 8;

constexpr ObjectCommand modify_qp_command(prm::Opcode opcode, std::size_t in_bytes = kModifyQpBytes) {
  return {opcode, DevxKind::qp, true, in_bytes, kHeadBytes, devx_modify_qp};
}

constexpr std::array kObjectCommands{
    modify_qp_command(prm::Opcode::rst2init_qp),
    modify_qp_command(prm::Opcode::init2init_qp),
    modify_qp_command(prm::Opcode::init2rtr_qp),
    modify_qp_command(prm::Opcode::rtr2rts_qp),
    modify_qp_command(prm::Opcode::rts2rts_qp),
    modify_qp_command(prm::Opcode::sqerr2rts_qp),
    modify_qp_command(prm::Opcode::to_error_qp, kHeadBytes),
    modify_qp_command(prm::Opcode::to_reset_qp, kHeadBytes),
    ObjectCommand{prm::Opcode::query_qp, DevxKind::qp, false, kHeadBytes, kQueryQpBytes, devx_query_qp},
};

/// What a handle is to DEVX: an object of its own, or one of verbs.
struct Named {
  DevxKind kind = DevxKind::none;
  std::uint32_t number = 0;
};

Named name_of(const Object& object) {
  switch (object.type()) {
    case ObjectType::devx_object: {
      const auto& own = static_cast<const DevxObject&>(object);
      return {own.kind, own.number};
    }
    case ObjectType::qp:
      return {DevxKind::qp, static_cast<const QpObject&>(object).number};
    case ObjectType::cq:
      return {DevxKind::cq, static_cast<const CqObject&>(object).number};
    default:
      return {};
  }
}

constexpr std::array kCreateAttributes{
    handle_attribute(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE),
    in_at_least(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, kHeadBytes),
    out_at_least(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, kHeadBytes),
};

int create_object(FileState& file, IoctlCall& call) {
  if (!file.devx) return EINVAL;
  Mailbox mailbox;
  constexpr std::uint16_t kOut = MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT;
  if (const int error = mailbox.read(call, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, kOut); error != 0)
    return error;
  for (const CreateCommand& command : kCreateCommands) {
    if (command.opcode != mailbox.opcode()) continue;
    if (mailbox.in_bytes() < command.in_bytes) return EINVAL;
    auto owned = std::make_unique<DevxObject>(command.kind);
    DevxObject& object = *owned;
    const PrmOutcome outcome = command.run(file, mailbox, object);
    if (!outcome.ok()) return mailbox.answer(call, kOut, outcome);
    file.objects.insert(std::move(owned));
    prm::CommandOut::object_id::set(mailbox.out(), object.number);
    int error = mailbox.answer(call, kOut, outcome);
    if (error == 0) error = call.answer_handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, object.handle());
    return finish_creation(file, object, error);
  }
  if (!creates_object(mailbox.opcode())) return EINVAL;
  return mailbox.answer(call, kOut, {prm::Status::bad_opcode, DevxSyndrome::unknown_command});
}

constexpr std::array kDestroyAttributes{handle_attribute(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE)};

int destroy_object(FileState& file, IoctlCall& call) {
  return file.objects.destroy(file, ObjectType::devx_object,
                              call.handle(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE));
}

struct AttributeIds {
  std::uint16_t handle;
  std::uint16_t in;
  std::uint16_t out;
};

/// A command on an object that exists. The mailbox must name the object that the handle names.
int run_on_object(FileState& file, IoctlCall& call, const AttributeIds& ids, bool modifies) {
  if (!file.devx) return EINVAL;
  const Object* object = file.objects.find(call.handle(ids.handle));
  if (object == nullptr) return ENOENT;
  const Named named = name_of(*object);
  if (named.kind == DevxKind::none) return EINVAL;
  Mailbox mailbox;
  if (const int error = mailbox.read(call, ids.in, ids.out); error != 0) return error;
  for (const ObjectCommand& command : kObjectCommands) {
    if (command.opcode != mailbox.opcode() || command.modifies != modifies) continue;
    if (command.kind != named.kind || mailbox.in_bytes() < command.in_bytes) return EINVAL;
    if (mailbox.out_bytes() < command.out_bytes) return EINVAL;
    // Every command of this list has the object's number in the same place.
    if (prm::StopQpIn::qpn::get(mailbox.in()) != named.number) return EINVAL;
    return mailbox.answer(call, ids.out, command.run(file, mailbox, named.number));
  }
  if (!(modifies ? modifies_object(mailbox.opcode()) : queries_object(mailbox.opcode()))) return EINVAL;
  return mailbox.answer(call, ids.out, {prm::Status::bad_opcode, DevxSyndrome::unknown_command});
}

constexpr std::array kModifyAttributes{
    handle_attribute(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE),
    in_at_least(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, kHeadBytes),
    out_at_least(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, kHeadBytes),
};

int modify_object(FileState& file, IoctlCall& call) {
  return run_on_object(file, call,
                       {MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
                        MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT},
                       true);
}

constexpr std::array kQueryAttributes{
    handle_attribute(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE),
    in_at_least(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, kHeadBytes),
    out_at_least(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, kHeadBytes),
};

int query_object(FileState& file, IoctlCall& call) {
  return run_on_object(file, call,
                       {MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
                        MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT},
                       false);
}

}  // namespace

int DevxObject::release(FileState& file) {
  switch (kind) {
    case DevxKind::pd:
      return file.nic.dealloc_pd(number);
    case DevxKind::mkey:
      return file.nic.destroy_mkey(key);
    case DevxKind::cq:
      return file.nic.destroy_cq(number);
    case DevxKind::qp:
      return file.nic.destroy_qp(number);
    case DevxKind::none:
      break;
  }
  return 0;
}

PrmOutcome devx_alloc_pd(FileState& file, Mailbox&, DevxObject& object) {
  const Result<std::uint32_t> pd = file.nic.alloc_pd(file.device, &file);
  if (pd) object.number = *pd;
  return outcome_of(pd.error());
}

std::span<const IoctlMethod> devx_object_methods() {
  static constexpr std::array kMethods{
      IoctlMethod{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, kCreateAttributes, create_object},
      IoctlMethod{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, kDestroyAttributes,
                  destroy_object},
      IoctlMethod{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, kModifyAttributes, modify_object},
      IoctlMethod{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, kQueryAttributes, query_object},
  };
  return kMethods;
}

}  // namespace belfry::softnic
