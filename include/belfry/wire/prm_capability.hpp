#pragma once
/// \file
/// QUERY_HCA_CAP: what a device can do, one group a command. Offsets: Linux,
/// include/linux/mlx5/mlx5_ifc.h; send_dbr_mode_* and log_max_send_dbr_less_qp_sq: rdma-core,
/// tests/mlx5_prm_structs.py.

#include <cstdint>

#include "belfry/wire/prm_command.hpp"

// Fields keep the PRM's own lower-case names.
// NOLINTBEGIN(readability-identifier-naming)
namespace belfry::wire::prm {

/// A capability group, the high bits of op_mod.
enum class CapabilityGroup : std::uint16_t {
  general = 0x00,
  ethernet_offloads = 0x01,
  odp = 0x02,
  atomic = 0x03,
  roce = 0x04,
  ipoib_offloads = 0x05,
  ipoib_enhanced_offloads = 0x06,
  nic_flow_table = 0x07,
  eswitch_flow_table = 0x08,
  eswitch = 0x09,
  qos = 0x0c,
  debug = 0x0d,
  device_memory = 0x0f,
  tls = 0x11,
  vdpa_emulation = 0x13,
  device_event = 0x14,
  ipsec = 0x15,
  crypto = 0x1a,
  macsec = 0x1f,
  general_2 = 0x20,
  port_selection = 0x25,
  advanced_virtualization = 0x26,
};

/// \return op_mod: the group and whether its current or its largest settings are asked for
BELFRY_FN constexpr std::uint16_t capability_op_mod(CapabilityGroup group, bool current = true) {
  return static_cast<std::uint16_t>((static_cast<unsigned>(group) << 1) | (current ? 1u : 0u));
}
BELFRY_FN constexpr CapabilityGroup capability_group(std::uint32_t op_mod) {
  return static_cast<CapabilityGroup>(op_mod >> 1);
}

struct QueryHcaCapIn : CommandIn {
  using other_function = PrmField<0x040, 1>;
  using function_id = PrmField<0x050, 16>;
};
struct QueryHcaCapOut : CommandOut {
  static constexpr std::uint32_t kBytes = 4112;
  using capability = PrmBytes<0x080, 4096>;  ///< the group asked for; 256 B are in use
};
static_assert(QueryHcaCapOut::capability::kEnd == QueryHcaCapOut::kBytes * 8);

enum class PortType : std::uint8_t { infiniband = 0, ethernet = 1 };
enum class TimestampCapability : std::uint8_t { free_running = 0, real_time = 1, both = 2 };

/// Group general. "log" is the binary logarithm.
struct GeneralCapability {
  static constexpr std::uint32_t kBytes = 256;
  using vhca_resource_manager = PrmField<0x01f, 1>;
  using hca_cap_2 = PrmField<0x020, 1>;  ///< group general_2 can be asked for
  using vhca_id = PrmField<0x030, 16>;
  using qp_data_in_order = PrmField<0x062, 1>;
  using log_max_srq_sz = PrmField<0x080, 8>;
  using log_max_qp_sz = PrmField<0x088, 8>;
  using log_max_qp = PrmField<0x09b, 5>;
  using log_max_srq = PrmField<0x0ab, 5>;
  using log_max_cq_sz = PrmField<0x0c8, 8>;
  using log_max_cq = PrmField<0x0db, 5>;
  using log_max_eq_sz = PrmField<0x0e0, 8>;
  using relaxed_ordering_write = PrmField<0x0e8, 1>;
  using log_max_mkey = PrmField<0x0ea, 6>;
  using log_max_eq = PrmField<0x0fc, 4>;
  using max_indirection = PrmField<0x100, 8>;
  using fixed_buffer_size = PrmField<0x108, 1>;
  using log_max_mrw_sz = PrmField<0x109, 7>;
  using null_mkey = PrmField<0x119, 1>;
  using log_max_klm_list_size = PrmField<0x11a, 6>;
  using log_max_ra_req_dc = PrmField<0x12a, 6>;
  using log_max_ra_res_dc = PrmField<0x13a, 6>;
  using log_max_ra_req_qp = PrmField<0x14a, 6>;  ///< READs and atomics a requester may have in flight
  using rts2rts_qp_udp_sport = PrmField<0x151, 1>;
  using log_max_ra_res_qp = PrmField<0x15a, 6>;
  using end_pad = PrmField<0x160, 1>;
  using start_pad = PrmField<0x163, 1>;
  using cache_line_128byte = PrmField<0x164, 1>;
  using rts2rts_qp_dscp = PrmField<0x16a, 1>;
  using gid_table_size = PrmField<0x170, 16>;   ///< code: 8 << n entries
  using pkey_table_size = PrmField<0x190, 16>;  ///< code: 128 << n entries
  using ib_virt = PrmField<0x1a2, 1>;
  using local_ca_ack_delay = PrmField<0x1ab, 5>;
  using port_type = PrmField<0x1b6, 2>;  ///< PortType
  using num_ports = PrmField<0x1b8, 8>;
  using log_max_msg = PrmField<0x1c3, 5>;
  using cqe_version = PrmField<0x1fc, 4>;
  using compact_address_vector = PrmField<0x200, 1>;
  using dc_req_sctr_data_cqe = PrmField<0x20c, 1>;
  using dc_connect_qp = PrmField<0x20d, 1>;
  using dc_cnak_trace = PrmField<0x20e, 1>;
  using drain_sigerr = PrmField<0x20f, 1>;
  using wq_signature = PrmField<0x214, 1>;
  using sctr_data_cqe = PrmField<0x215, 1>;
  using tph = PrmField<0x218, 1>;
  using dct = PrmField<0x21a, 1>;
  using qos = PrmField<0x21b, 1>;
  using eth_net_offloads = PrmField<0x21c, 1>;
  using roce = PrmField<0x21d, 1>;
  using atomic = PrmField<0x21e, 1>;
  using extended_retry_count = PrmField<0x21f, 1>;
  using cq_oi = PrmField<0x220, 1>;
  using cq_resize = PrmField<0x221, 1>;
  using cq_moderation = PrmField<0x222, 1>;
  using pg = PrmField<0x227, 1>;
  using block_lb_mc = PrmField<0x228, 1>;
  using apm = PrmField<0x22e, 1>;
  using imaicl = PrmField<0x231, 1>;
  using qkv = PrmField<0x236, 1>;
  using pkv = PrmField<0x237, 1>;
  using set_deth_sqpn = PrmField<0x238, 1>;
  using xrc = PrmField<0x23c, 1>;
  using ud = PrmField<0x23d, 1>;
  using uc = PrmField<0x23e, 1>;
  using rc = PrmField<0x23f, 1>;
  using uar_4k = PrmField<0x240, 1>;
  using uar_sz = PrmField<0x24a, 6>;
  using log_max_dc_cnak_qps = PrmField<0x253, 5>;
  using log_pg_sz = PrmField<0x258, 8>;
  using bf = PrmField<0x260, 1>;
  using driver_version = PrmField<0x261, 1>;
  using log_bf_reg_size = PrmField<0x26b, 5>;  ///< bytes of one BlueFlame register, both halves
  using num_lag_ports = PrmField<0x27c, 4>;
  using max_wqe_sz_sq = PrmField<0x290, 16>;  ///< bytes
  using max_wqe_sz_rq = PrmField<0x2b0, 16>;
  using max_wqe_sz_sq_dc = PrmField<0x2d0, 16>;
  using max_qp_mcg = PrmField<0x2e7, 25>;
  using log_max_mcg = PrmField<0x318, 8>;
  using relaxed_ordering_read = PrmField<0x32a, 1>;
  using log_max_pd = PrmField<0x32b, 5>;
  using log_max_xrcd = PrmField<0x33b, 5>;
  using log_max_rq = PrmField<0x363, 5>;
  using log_max_sq = PrmField<0x36b, 5>;
  using log_max_wq_sz = PrmField<0x3db, 5>;
  using general_obj_types = PrmField<0x400, 64>;
  using sq_ts_format = PrmField<0x440, 2>;  ///< TimestampCapability
  using rq_ts_format = PrmField<0x442, 2>;
  using max_num_eqs = PrmField<0x470, 16>;
  using log_uar_page_sz = PrmField<0x490, 16>;
  using device_frequency_mhz = PrmField<0x4c0, 32>;
  using device_frequency_khz = PrmField<0x4e0, 32>;
  using num_of_uars_per_page = PrmField<0x520, 32>;
  using log_max_dct_connections = PrmField<0x57b, 5>;
  using log_max_atomic_size_qp = PrmField<0x580, 8>;
  using log_max_atomic_size_dc = PrmField<0x598, 8>;
  using mini_cqe_resp_stride_index = PrmField<0x5bc, 1>;
  using cqe_128_always = PrmField<0x5bd, 1>;
  using cqe_compression_128 = PrmField<0x5be, 1>;
  using cqe_compression = PrmField<0x5bf, 1>;
};
static_assert(GeneralCapability::num_ports::kEnd == 0x38 * 8);
static_assert(GeneralCapability::cqe_version::kEnd == GeneralCapability::compact_address_vector::kBit);
static_assert(GeneralCapability::cqe_compression::kEnd == 0xb8 * 8);

/// Group general_2.
struct GeneralCapability2 {
  static constexpr std::uint32_t kBytes = 256;
  using send_dbr_mode_no_dbr_int =
      PrmField<0x2e0, 1>;  ///< no doorbell record, rung by the device's own cores
  using send_dbr_mode_no_dbr_ext = PrmField<0x2e1, 1>;  ///< no doorbell record, rung from outside
  using log_max_send_dbr_less_qp_sq = PrmField<0x2e3, 5>;
};
static_assert(GeneralCapability2::log_max_send_dbr_less_qp_sq::kEnd == 0x5d * 8);

/// Bits of AtomicCapability::atomic_operations.
inline constexpr std::uint32_t kAtomicCompareSwap = 1u << 0;
inline constexpr std::uint32_t kAtomicFetchAdd = 1u << 1;
inline constexpr std::uint32_t kAtomicMaskedCompareSwap = 1u << 2;
inline constexpr std::uint32_t kAtomicMaskedFetchAdd = 1u << 3;

/// Group atomic. Sizes are sets, the sum of the operand sizes in bytes: 4 | 8.
struct AtomicCapability {
  static constexpr std::uint32_t kBytes = 256;
  using atomic_req_8B_endianness_mode = PrmField<0x040, 2>;
  using supported_atomic_req_8B_endianness_mode_1 = PrmField<0x046, 1>;  ///< results in host order
  using atomic_operations = PrmField<0x090, 16>;
  using atomic_size_qp = PrmField<0x0b0, 16>;
  using atomic_size_dc = PrmField<0x0d0, 16>;
  using fetch_add_pci_atomic = PrmField<0x280, 16>;
  using swap_pci_atomic = PrmField<0x290, 16>;
  using compare_swap_pci_atomic = PrmField<0x2a0, 16>;
};
static_assert(AtomicCapability::compare_swap_pci_atomic::kEnd == 0x56 * 8);

/// Group roce.
struct RoceCapability {
  static constexpr std::uint32_t kBytes = 256;
  using roce_apm = PrmField<0x000, 1>;
  using sw_r_roce_src_udp_port = PrmField<0x004, 1>;
  using fl_rc_qp_when_roce_disabled = PrmField<0x005, 1>;  ///< loopback RC QPs without RoCE
  using fl_rc_qp_when_roce_enabled = PrmField<0x006, 1>;
  using qp_ts_format = PrmField<0x01e, 2>;  ///< TimestampCapability
  using l3_type = PrmField<0x08c, 4>;       ///< bit 1: IPv4, bit 2: IPv6
  using roce_version = PrmField<0x098, 8>;  ///< bit 0: v1, bit 2: v2
  using r_roce_dest_udp_port = PrmField<0x0b0, 16>;
  using r_roce_max_src_udp_port = PrmField<0x0c0, 16>;
  using r_roce_min_src_udp_port = PrmField<0x0d0, 16>;
  using roce_address_table_size = PrmField<0x0f0, 16>;
};
static_assert(RoceCapability::roce_address_table_size::kEnd == 0x20 * 8);

}  // namespace belfry::wire::prm
// NOLINTEND(readability-identifier-naming)
