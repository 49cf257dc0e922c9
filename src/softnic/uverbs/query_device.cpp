// Attributes of the device and its port.

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <limits>

#include "belfry/port/byte_order.hpp"
#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/device_attributes.hpp"

namespace belfry::softnic {
namespace {

// enum ibv_device_cap_flags
constexpr std::uint32_t kPortActiveEvent = 1u << 10;
constexpr std::uint32_t kSystemImageGuid = 1u << 11;
constexpr std::uint32_t kRcRnrNakGeneration = 1u << 12;
constexpr std::uint32_t kDeviceFlags = kPortActiveEvent | kSystemImageGuid | kRcRnrNakGeneration;
constexpr std::uint32_t kAtomicHca = 1;  // enum ibv_atomic_cap

// enum ibv_port_state, IB specification table 14 (physical state), active width and speed codes
constexpr std::uint8_t kPortActive = 4;
constexpr std::uint8_t kPhysicalLinkUp = 5;
constexpr std::uint8_t kWidth4x = 2;
constexpr std::uint8_t kSpeedNdr = 128;
constexpr std::uint8_t kMaxMtuCode = 5;
constexpr std::uint8_t kLinkInfiniband = 1;
constexpr std::uint8_t kLinkEthernet = 2;

ib_uverbs_query_device_resp describe(const FileState& file) {
  const Limits& limits = file.limits();
  ib_uverbs_query_device_resp r{};
  r.fw_ver = kFirmwareMajor << 32 | kFirmwareMinor << 16 | kFirmwareSub;
  r.node_guid = swap_bytes(file.identity.guid);
  r.sys_image_guid = r.node_guid;
  r.max_mr_size = std::numeric_limits<std::uint64_t>::max();
  r.page_size_cap = ~std::uint64_t{4095};
  r.vendor_id = kVendorId;
  r.vendor_part_id = kVendorPart;
  r.max_qp = limits.qps;
  r.max_qp_wr = max_queue_entries(limits);
  r.device_cap_flags = kDeviceFlags;
  r.max_sge = kMaxSge;
  r.max_sge_rd = kMaxSge;
  r.max_cq = limits.cqs;
  r.max_cqe = limits.cq_entries - 1;
  r.max_mr = limits.mkeys;
  r.max_pd = limits.pds;
  r.max_qp_rd_atom = limits.read_atomic_depth;
  r.max_res_rd_atom = limits.read_atomic_depth * limits.qps;
  r.max_qp_init_rd_atom = limits.read_atomic_depth;
  r.atomic_cap = kAtomicHca;
  r.max_ah = std::numeric_limits<std::int32_t>::max();
  r.max_pkeys = pkey_count(file.identity.link);
  r.local_ca_ack_delay = kLocalAckDelay;
  r.phys_port_cnt = 1;
  return r;
}

ib_uverbs_query_port_resp describe_port(const FileState& file) {
  const bool ethernet = file.identity.link == LinkLayer::ethernet;
  ib_uverbs_query_port_resp r{};
  r.port_cap_flags =
      ethernet ? IB_UVERBS_PCF_CM_SUP | IB_UVERBS_PCF_IP_BASED_GIDS
               : IB_UVERBS_PCF_CM_SUP | IB_UVERBS_PCF_SYS_IMAGE_GUID_SUP | IB_UVERBS_PCF_EXTENDED_SPEEDS_SUP;
  r.max_msg_sz = file.limits().max_message;
  r.gid_tbl_len = static_cast<std::uint32_t>(file.identity.gids.size());
  r.pkey_tbl_len = pkey_count(file.identity.link);
  r.lid = file.identity.lid;
  r.sm_lid = ethernet ? 0 : 1;
  r.state = kPortActive;
  r.max_mtu = kMaxMtuCode;
  r.active_mtu = mtu_code(file.identity.active_mtu);
  r.max_vl_num = ethernet ? 0 : 4;
  r.subnet_timeout = ethernet ? 0 : 18;
  r.active_width = kWidth4x;
  r.active_speed = kSpeedNdr;
  r.phys_state = kPhysicalLinkUp;
  r.link_layer = ethernet ? kLinkEthernet : kLinkInfiniband;
  r.flags = ethernet ? IB_UVERBS_QPF_GRH_REQUIRED : 0;
  return r;
}

}  // namespace

int query_device(FileState& file, const WriteCall& call) {
  ib_uverbs_query_device request{};
  if (const int error = call.read(request); error != 0) return error;
  return call.respond(describe(file));
}

int query_device_extended(FileState& file, const WriteCall& call) {
  ib_uverbs_ex_query_device request{};
  if (const int error = call.read(request); error != 0) return error;
  if (request.comp_mask != 0 || request.reserved != 0) return EINVAL;

  // The driver's part: no offload of it exists here, so only its length is not zero.
  mlx5_ib_query_device_resp driver{};
  const std::size_t room = call.driver_response.bytes;
  if (room != 0) {
    if (room < offsetof(mlx5_ib_query_device_resp, tso_caps)) return EINVAL;
    driver.response_length = static_cast<std::uint32_t>(std::min(sizeof driver, room));
    if (const int error = call.respond_driver_some(driver); error != 0) return error;
  }
  ib_uverbs_ex_query_device_resp response{};
  response.base = describe(file);
  response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, call.response.bytes));
  response.device_cap_flags_ex = kDeviceFlags;
  return call.respond(response);
}

int query_port(FileState& file, const WriteCall& call) {
  ib_uverbs_query_port request{};
  if (const int error = call.read(request); error != 0) return error;
  if (request.port_num != kPort) return EINVAL;
  return call.respond(describe_port(file));
}

}  // namespace belfry::softnic
