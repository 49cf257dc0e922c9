// Registration of memory that DEVX objects name by number (umem).

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <array>
#include <cerrno>

#include "softnic/uverbs/devx_objects.hpp"
#include "softnic/uverbs/ioctl_call.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {
namespace {

constexpr std::uint32_t kKnownAccess =
    kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead | kAccessRelaxedOrdering;

constexpr std::array kRegAttributes{
    handle_attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE),
    in_attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8),
    in_attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8),
    number_attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, false),
    number_attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, false),
    in_attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, 4, false),
    out_attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4),
};

int reg_umem(FileState& file, IoctlCall& call) {
  if (!file.devx) return EINVAL;
  if (call.has(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)) return EOPNOTSUPP;
  auto owned = std::make_unique<UmemObject>();
  UmemObject& umem = *owned;
  std::uint64_t access = 0;
  std::uint64_t page_sizes = 0;
  int error = call.read_number(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, umem.address);
  if (error == 0) error = call.read_number(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, umem.bytes);
  if (error == 0) error = call.read_number(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, access);
  if (error == 0) error = call.read_number(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, page_sizes);
  if (error != 0) return error;
  if ((access & ~std::uint64_t{kKnownAccess}) != 0) return EINVAL;
  if ((access & kAccessRemoteWrite) != 0 && (access & kAccessLocalWrite) == 0) return EINVAL;
  if (call.has(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP) && page_sizes == 0) return EINVAL;
  umem.access = static_cast<std::uint32_t>(access);
  error =
      check_registrable(file, umem.address, umem.bytes, (umem.access & kAccessLocalWrite) != 0, umem.owner);
  if (error == 0 && !is_gpu(umem.owner))
    error = umem.locked.lock(umem.address, umem.bytes, file.enforce_memlock);
  if (error != 0) return error;
  umem.number = file.objects.insert(std::move(owned)) + 1;  // 0 stays what a field that nobody set says

  error = call.write(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem.number);
  if (error == 0) error = call.answer_handle(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, umem.handle());
  return finish_creation(file, umem, error);
}

constexpr std::array kDeregAttributes{handle_attribute(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE)};

int dereg_umem(FileState& file, IoctlCall& call) {
  return file.objects.destroy(file, ObjectType::devx_umem, call.handle(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE));
}

}  // namespace

PrmOutcome place_in_umem(FileState& file, std::uint32_t number, std::uint64_t offset, std::uint64_t bytes,
                         bool writable, UmemPlace& place) {
  UmemObject* umem = number == 0 ? nullptr : file.objects.find<UmemObject>(number - 1);
  if (umem == nullptr) return bad_resource(DevxSyndrome::unknown_umem);
  if (offset > umem->bytes || bytes > umem->bytes - offset) return bad_parameter(DevxSyndrome::outside_umem);
  if (writable && (umem->access & kAccessLocalWrite) == 0)
    return bad_resource(DevxSyndrome::umem_not_writable);
  // The registration pinned nothing: look again whether the memory is still what it was.
  if (bytes != 0 && !is_gpu(umem->owner) && check_pinnable(umem->address + offset, bytes, writable) != 0) {
    return bad_resource(DevxSyndrome::umem_not_writable);
  }
  place.umem = umem;
  place.owner = umem->owner;
  place.memory = reinterpret_cast<void*>(umem->address + offset);
  return {};
}

std::span<const IoctlMethod> devx_umem_methods() {
  static constexpr std::array kMethods{
      IoctlMethod{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, kRegAttributes, reg_umem},
      IoctlMethod{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, kDeregAttributes, dereg_umem},
  };
  return kMethods;
}

}  // namespace belfry::softnic
