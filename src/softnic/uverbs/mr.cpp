// Memory regions of verbs.

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "softnic/page_bytes.hpp"
#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {
namespace {

constexpr std::uint32_t kWrites = IB_UVERBS_ACCESS_REMOTE_ATOMIC | IB_UVERBS_ACCESS_REMOTE_WRITE |
                                  IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_MW_BIND;
constexpr std::uint32_t kKnown = ((IB_UVERBS_ACCESS_HUGETLB << 1) - 1) | IB_UVERBS_ACCESS_OPTIONAL_RANGE;
constexpr std::uint32_t kNicRights =
    kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic | kAccessRelaxedOrdering;

// enum ib_mr_rereg_flags
constexpr std::uint32_t kChangeTranslation = 1u << 0;
constexpr std::uint32_t kChangePd = 1u << 1;
constexpr std::uint32_t kChangeAccess = 1u << 2;

int check_access(std::uint32_t access) {
  if ((access & (IB_UVERBS_ACCESS_REMOTE_ATOMIC | IB_UVERBS_ACCESS_REMOTE_WRITE)) != 0 &&
      (access & IB_UVERBS_ACCESS_LOCAL_WRITE) == 0) {
    return EINVAL;
  }
  if ((access & ~kKnown) != 0) return EINVAL;
  return (access & IB_UVERBS_ACCESS_ON_DEMAND) != 0 ? EOPNOTSUPP : 0;
}

}  // namespace

bool same_page_offset(std::uint64_t start, std::uint64_t iova) { return (start ^ iova) % page_bytes() == 0; }

std::unique_ptr<MrObject> make_region(FileState& file, const RegionRequest& request) {
  PdObject* pd = file.objects.find<PdObject>(request.pd_handle);
  if (pd == nullptr) return nullptr;
  auto mr = std::make_unique<MrObject>();
  mr->pd = pd;
  mr->attributes.device = file.device;
  mr->attributes.owner = &file;
  mr->attributes.pd = pd->number;
  mr->attributes.address = request.iova;
  mr->attributes.length = request.length;
  mr->attributes.memory = reinterpret_cast<void*>(request.start);
  mr->attributes.access = request.access;
  return mr;
}

int make_key(FileState& file, MrObject& mr) {
  if (const int error = check_access(mr.attributes.access); error != 0) return error;
  const MkeyAttributes& a = mr.attributes;
  const UserAddress start = reinterpret_cast<std::uintptr_t>(a.memory);
  if (const int error =
          check_registrable(file, start, a.length, (a.access & kWrites) != 0, mr.attributes.memory_owner);
      error != 0)
    return error;
  if (!is_gpu(mr.attributes.memory_owner)) {
    if (const int error = mr.locked.lock(start, a.length, file.enforce_memlock); error != 0) return error;
  }
  mr.attributes.variant = file.key_variant++;
  MkeyAttributes nic = mr.attributes;
  nic.access &= kNicRights;
  const Result<std::uint32_t> key = file.nic.create_mkey(nic);
  if (!key) return key.error();
  mr.key = *key;
  return 0;
}

int check_registrable(FileState& file, UserAddress start, std::uint64_t bytes, bool writable,
                      MemoryOwner& owner) {
  owner = bytes == 0 ? kHostMemory : file.nic.owner_of(reinterpret_cast<const void*>(start), bytes);
  return is_gpu(owner) ? 0 : check_pinnable(start, bytes, writable);
}

int reg_mr(FileState& file, const WriteCall& call) {
  ib_uverbs_reg_mr request{};
  if (const int error = call.read(request); error != 0) return error;
  if (!same_page_offset(request.start, request.hca_va)) return EINVAL;
  auto owned = make_region(file, {request.pd_handle, request.hca_va, request.start, request.length,
                                  static_cast<std::uint32_t>(request.access_flags)});
  if (owned == nullptr) return EINVAL;
  MrObject& mr = *owned;
  if (const int error = make_key(file, mr); error != 0) return error;
  mr.hold(*mr.pd);
  file.objects.insert(std::move(owned));

  ib_uverbs_reg_mr_resp response{};
  response.mr_handle = mr.handle();
  response.lkey = mr.key;
  response.rkey = mr.key;
  return finish_creation(file, mr, call.respond(response));
}

int rereg_mr(FileState& file, const WriteCall& call) {
  ib_uverbs_rereg_mr request{};
  if (const int error = call.read(request); error != 0) return error;
  if (request.flags == 0) return EINVAL;
  if ((request.flags & ~(kChangeTranslation | kChangePd | kChangeAccess)) != 0) return EOPNOTSUPP;
  const bool moves = (request.flags & kChangeTranslation) != 0;
  if (moves && !same_page_offset(request.start, request.hca_va)) return EINVAL;
  MrObject* mr = file.objects.find<MrObject>(request.mr_handle);
  if (mr == nullptr) return file.objects.find(request.mr_handle) == nullptr ? ENOENT : EINVAL;

  MrObject changed;
  changed.pd = mr->pd;
  changed.attributes = mr->attributes;
  if ((request.flags & kChangeAccess) != 0) changed.attributes.access = request.access_flags;
  if ((request.flags & kChangePd) != 0) {
    changed.pd = file.objects.find<PdObject>(request.pd_handle);
    if (changed.pd == nullptr) return EINVAL;
    changed.attributes.pd = changed.pd->number;
  }
  if (moves) {
    changed.attributes.address = request.hca_va;
    changed.attributes.length = request.length;
    changed.attributes.memory = reinterpret_cast<void*>(request.start);
  }
  // A new key first, so that a failure leaves the region as it was.
  if (const int error = make_key(file, changed); error != 0) return error;
  if (const int error = file.nic.destroy_mkey(mr->key); error != 0) {
    file.nic.destroy_mkey(changed.key);
    return error;
  }
  if (changed.pd != mr->pd) mr->hold_instead(*mr->pd, *changed.pd);
  mr->pd = changed.pd;
  mr->key = changed.key;
  mr->attributes = changed.attributes;
  mr->locked = std::move(changed.locked);

  ib_uverbs_rereg_mr_resp response{};
  response.lkey = mr->key;
  response.rkey = mr->key;
  return call.respond(response);
}

int dereg_mr(FileState& file, const WriteCall& call) {
  ib_uverbs_dereg_mr request{};
  if (const int error = call.read(request); error != 0) return error;
  return file.objects.destroy(file, ObjectType::mr, request.mr_handle);
}

}  // namespace belfry::softnic
