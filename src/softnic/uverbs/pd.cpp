// Protection domains and address handles.

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cstring>

#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/objects.hpp"

namespace belfry::softnic {

int finish_creation(FileState& file, Object& object, int error) {
  if (error != 0) file.objects.destroy(file, object.type(), object.handle());
  return error;
}

int alloc_pd(FileState& file, const WriteCall& call) {
  ib_uverbs_alloc_pd request{};
  if (const int error = call.read(request); error != 0) return error;
  const Result<std::uint32_t> number = file.nic.alloc_pd(file.device, &file);
  if (!number) return number.error();
  auto owned = std::make_unique<PdObject>(*number);
  PdObject& pd = *owned;
  file.objects.insert(std::move(owned));

  mlx5_ib_alloc_pd_resp driver{};
  driver.pdn = pd.number;
  int error = call.respond_driver(driver);
  if (error == 0) {
    ib_uverbs_alloc_pd_resp response{};
    response.pd_handle = pd.handle();
    error = call.respond(response);
  }
  return finish_creation(file, pd, error);
}

int dealloc_pd(FileState& file, const WriteCall& call) {
  ib_uverbs_dealloc_pd request{};
  if (const int error = call.read(request); error != 0) return error;
  return file.objects.destroy(file, ObjectType::pd, request.pd_handle);
}

int create_ah(FileState& file, const WriteCall& call) {
  ib_uverbs_create_ah request{};
  if (const int error = call.read(request); error != 0) return error;
  PdObject* pd = file.objects.find<PdObject>(request.pd_handle);
  const bool ethernet = file.identity.link == LinkLayer::ethernet;
  if (pd == nullptr || request.attr.port_num != kPort) return EINVAL;
  if (ethernet && request.attr.is_global == 0) return EINVAL;
  if (request.attr.is_global != 0 && request.attr.grh.sgid_index >= file.identity.gids.size()) return EINVAL;

  auto owned = std::make_unique<AhObject>();
  AhObject& ah = *owned;
  ah.path.dlid = request.attr.dlid;
  ah.path.global = request.attr.is_global != 0;
  std::memcpy(ah.path.dgid.data(), request.attr.grh.dgid, ah.path.dgid.size());
  ah.path.sgid_index = request.attr.grh.sgid_index;
  ah.path.sl = request.attr.sl;
  ah.hold(*pd);
  file.objects.insert(std::move(owned));

  // On Ethernet the library wants the destination's MAC, which a link local GID carries in its
  // interface id (modified EUI-64). Other GIDs would need a neighbour table: their MAC stays zero.
  mlx5_ib_create_ah_resp driver{};
  int error = 0;
  if (ethernet && call.driver_response.bytes != 0) {
    const Gid& gid = ah.path.dgid;
    if (gid[0] == 0xfe && gid[1] == 0x80) {
      const std::uint8_t mac[6] = {
          static_cast<std::uint8_t>(gid[8] ^ 2), gid[9], gid[10], gid[13], gid[14], gid[15]};
      std::memcpy(driver.dmac, mac, sizeof mac);
    }
    driver.response_length = offsetof(mlx5_ib_create_ah_resp, reserved);
    error = call.respond_driver_some(driver);
  }
  if (error == 0) {
    ib_uverbs_create_ah_resp response{};
    response.ah_handle = ah.handle();
    error = call.respond(response);
  }
  return finish_creation(file, ah, error);
}

int destroy_ah(FileState& file, const WriteCall& call) {
  ib_uverbs_destroy_ah request{};
  if (const int error = call.read(request); error != 0) return error;
  return file.objects.destroy(file, ObjectType::ah, request.ah_handle);
}

}  // namespace belfry::softnic
