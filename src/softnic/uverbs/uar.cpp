// UARs as objects: pages of doorbell registers that the application maps.

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <array>
#include <cerrno>

#include "softnic/page_bytes.hpp"
#include "softnic/uverbs/ioctl_call.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {
namespace {

constexpr std::array kAllocAttributes{
    handle_attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE),
    number_attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE),
    out_attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8),
    out_attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4),
    out_attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4),
};

int alloc_uar(FileState& file, IoctlCall& call) {
  std::uint64_t type = 0;
  if (const int error = call.read_number(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, type); error != 0) return error;
  // Write-combined (BlueFlame) or not cached: here both are shared memory.
  if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC) return EOPNOTSUPP;
  const Result<StaticUar> uar = file.attach_page(file.pages.allocate());
  if (!uar) return uar.error();
  auto owned = std::make_unique<UarObject>(*uar);
  UarObject& object = *owned;
  file.objects.insert(std::move(owned));

  const auto length = static_cast<std::uint32_t>(page_bytes());
  int error = call.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, uar->page.offset);
  if (error == 0) error = call.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, length);
  if (error == 0) error = call.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, uar->uar);
  if (error == 0) error = call.answer_handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, object.handle());
  return finish_creation(file, object, error);
}

constexpr std::array kDestroyAttributes{handle_attribute(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE)};

int destroy_uar(FileState& file, IoctlCall& call) {
  return file.objects.destroy(file, ObjectType::uar, call.handle(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE));
}

}  // namespace

std::span<const IoctlMethod> uar_methods() {
  static constexpr std::array kMethods{
      IoctlMethod{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, kAllocAttributes, alloc_uar},
      IoctlMethod{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, kDestroyAttributes, destroy_uar},
  };
  return kMethods;
}

}  // namespace belfry::softnic
