// Methods of memory regions that exist as ioctls only.

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "softnic/uverbs/ioctl_call.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {
namespace {

constexpr std::array kQueryAttributes{
    handle_attribute(UVERBS_ATTR_QUERY_MR_HANDLE),
    out_attribute(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4),
    out_attribute(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4),
    out_attribute(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8),
    out_attribute(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, false),
};

int query_mr(FileState& file, IoctlCall& call) {
  const std::uint32_t handle = call.handle(UVERBS_ATTR_QUERY_MR_HANDLE);
  const MrObject* mr = file.objects.find<MrObject>(handle);
  if (mr == nullptr) return file.objects.find(handle) == nullptr ? ENOENT : EINVAL;
  int error = call.write(UVERBS_ATTR_QUERY_MR_RESP_LKEY, mr->key);
  if (error == 0) error = call.write(UVERBS_ATTR_QUERY_MR_RESP_RKEY, mr->key);
  if (error == 0) error = call.write(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, mr->attributes.length);
  if (error == 0) error = call.write(UVERBS_ATTR_QUERY_MR_RESP_IOVA, mr->attributes.address);
  return error;
}

constexpr std::array kDmabufAttributes{
    handle_attribute(UVERBS_ATTR_REG_DMABUF_MR_HANDLE),
    handle_attribute(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE),
    in_attribute(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8),
    in_attribute(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8),
    in_attribute(UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8),
    in_attribute(UVERBS_ATTR_REG_DMABUF_MR_FD, 4),
    number_attribute(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
    out_attribute(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4),
    out_attribute(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4),
};

struct DmabufRequest {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
  std::uint64_t descriptor = 0;
  std::uint64_t access = 0;

  int read(const IoctlCall& call) {
    int error = call.read_number(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, offset);
    if (error == 0) error = call.read_number(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length);
    if (error == 0) error = call.read_number(UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova);
    if (error == 0) error = call.read_number(UVERBS_ATTR_REG_DMABUF_MR_FD, descriptor);
    if (error == 0) error = call.read_number(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, access);
    return error;
  }
};

/// Whether the descriptor is a buffer that holds the range. System calls are made directly: the C functions
/// of these names may be interposed by our own preload library.
int check_dmabuf(const DmabufRequest& r) {
  const int descriptor = static_cast<int>(r.descriptor);
  if (::syscall(SYS_fcntl, descriptor, F_GETFD) < 0) return EBADF;
  std::array<char, 64> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  std::array<char, 64> name{};
  if (::syscall(SYS_readlinkat, AT_FDCWD, link.data(), name.data(), name.size() - 1) > 0 &&
      std::strstr(name.data(), "dmabuf") == nullptr)
    return EINVAL;
  const long size = ::syscall(SYS_lseek, descriptor, 0L, SEEK_END);
  const std::uint64_t bytes = size < 0 ? 0 : static_cast<std::uint64_t>(size);
  return r.offset > bytes || r.length > bytes - r.offset ? EINVAL : 0;
}

/// What a dma-buf names is reached here through CUDA, which goes by address: so the iova must be where the
/// buffer lies, as libraries of GPU programs have it. Elsewhere it is as on a device that cannot take memory
/// by dma-buf; libraries then register the address.
int reg_dmabuf_mr(FileState& file, IoctlCall& call) {
  DmabufRequest request;
  if (const int error = request.read(call); error != 0) return error;
  auto owned = make_region(file, {call.handle(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE), request.iova,
                                  request.iova, request.length, static_cast<std::uint32_t>(request.access)});
  if (owned == nullptr) return EINVAL;
  MrObject& mr = *owned;
  if (request.access != mr.attributes.access) return EINVAL;
  if (request.length == 0 || !is_gpu(file.nic.owner_of(mr.attributes.memory, request.length)))
    return EOPNOTSUPP;
  if (const int error = check_dmabuf(request); error != 0) return error;
  if (!same_page_offset(request.offset, request.iova)) return EINVAL;
  if (const int error = make_key(file, mr); error != 0) return error;
  mr.hold(*mr.pd);
  file.objects.insert(std::move(owned));
  int error = call.write(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, mr.key);
  if (error == 0) error = call.write(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, mr.key);
  if (error == 0) error = call.answer_handle(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, mr.handle());
  return finish_creation(file, mr, error);
}

}  // namespace

std::span<const IoctlMethod> mr_methods() {
  static constexpr std::array kMethods{
      IoctlMethod{UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, kQueryAttributes, query_mr},
      IoctlMethod{UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, kDmabufAttributes, reg_dmabuf_mr},
  };
  return kMethods;
}

}  // namespace belfry::softnic
