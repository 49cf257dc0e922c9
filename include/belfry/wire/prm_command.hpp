#pragma once
/// \file
/// Head of every PRM command, and the short commands: protection domains, UARs, device queries.
/// Field names are the PRM's own, so that they can be searched for. Offsets: Linux,
/// include/linux/mlx5/mlx5_ifc.h; opcodes and status codes there and in include/linux/mlx5/device.h.

#include <cstdint>

#include "belfry/wire/prm_field.hpp"

// Fields keep the PRM's own lower-case names.
// NOLINTBEGIN(readability-identifier-naming)
namespace belfry::wire::prm {

enum class Opcode : std::uint16_t {
  query_hca_cap = 0x100,
  query_adapter = 0x101,
  query_issi = 0x10a,
  create_mkey = 0x200,
  query_mkey = 0x201,
  destroy_mkey = 0x202,
  query_special_contexts = 0x203,
  create_eq = 0x301,
  destroy_eq = 0x302,
  create_cq = 0x400,
  destroy_cq = 0x401,
  query_cq = 0x402,
  modify_cq = 0x403,
  create_qp = 0x500,
  destroy_qp = 0x501,
  rst2init_qp = 0x502,
  init2rtr_qp = 0x503,
  rtr2rts_qp = 0x504,
  rts2rts_qp = 0x505,
  sqerr2rts_qp = 0x506,
  to_error_qp = 0x507,  ///< 2ERR_QP
  to_reset_qp = 0x50a,  ///< 2RST_QP
  query_qp = 0x50b,
  sqd_rts_qp = 0x50c,
  init2init_qp = 0x50e,
  create_srq = 0x700,
  create_dct = 0x710,
  query_nic_vport_context = 0x754,
  query_roce_address = 0x760,
  query_hca_vport_context = 0x762,
  query_hca_vport_gid = 0x764,
  query_hca_vport_pkey = 0x765,
  alloc_pd = 0x800,
  dealloc_pd = 0x801,
  alloc_uar = 0x802,
  dealloc_uar = 0x803,
  query_lag = 0x842,
};

/// First byte of every output.
enum class Status : std::uint8_t {
  ok = 0x00,
  internal_error = 0x01,
  bad_opcode = 0x02,
  bad_parameter = 0x03,
  bad_system_state = 0x04,
  bad_resource = 0x05,
  resource_busy = 0x06,
  not_ready = 0x07,
  exceeds_limit = 0x08,
  bad_resource_state = 0x09,
  bad_index = 0x0a,
  no_resources = 0x0f,
  bad_qp_state = 0x10,
  bad_packet = 0x30,
  bad_size_outstanding_cqes = 0x40,
  bad_input_length = 0x50,
  bad_output_length = 0x51,
};

/// Head of every input.
struct CommandIn {
  static constexpr std::uint32_t kBytes = 16;  ///< head and two command words; longer commands say so
  using opcode = PrmField<0x000, 16>;          ///< Opcode
  using uid = PrmField<0x010, 16>;             ///< user context; the kernel fills it in
  using op_mod = PrmField<0x030, 16>;
};
static_assert(CommandIn::op_mod::kEnd == 8 * 8);

/// Head of every output.
struct CommandOut {
  static constexpr std::uint32_t kBytes = 16;
  using status = PrmField<0x000, 8>;  ///< Status
  using syndrome = PrmField<0x020, 32>;
  /// Where every create and alloc command puts the new object's number.
  using object_id = PrmField<0x048, 24>;
};
static_assert(CommandOut::syndrome::kEnd == 8 * 8 && CommandOut::object_id::kEnd == 12 * 8);

struct AllocPdIn : CommandIn {};
struct AllocPdOut : CommandOut {
  using pd = PrmField<0x048, 24>;
};
struct DeallocPdIn : CommandIn {
  using pd = PrmField<0x048, 24>;
};
struct DeallocPdOut : CommandOut {};

struct AllocUarIn : CommandIn {};
struct AllocUarOut : CommandOut {
  using uar = PrmField<0x048, 24>;
};
struct DeallocUarIn : CommandIn {
  using uar = PrmField<0x048, 24>;
};
struct DeallocUarOut : CommandOut {};

/// Vendor, board and firmware strings.
struct AdapterBlock {
  static constexpr std::uint32_t kBytes = 256;
  using ieee_vendor_id = PrmField<0x0c8, 24>;
  using vsd_vendor_id = PrmField<0x0f0, 16>;
  using vsd = PrmBytes<0x100, 208>;
  using vsd_contd_psid = PrmBytes<0x780, 16>;  ///< the board id, text
};
static_assert(AdapterBlock::vsd::kEnd == AdapterBlock::vsd_contd_psid::kBit);
static_assert(AdapterBlock::vsd_contd_psid::kEnd == AdapterBlock::kBytes * 8);

struct QueryAdapterIn : CommandIn {};
struct QueryAdapterOut : CommandOut {
  static constexpr std::uint32_t kBytes = 272;
  using query_adapter_struct = PrmPart<0x080, AdapterBlock>;
};
static_assert(QueryAdapterOut::query_adapter_struct::kEnd == QueryAdapterOut::kBytes * 8);

/// Interface step sequence ids: which revision of the command interface is in use.
struct QueryIssiIn : CommandIn {};
struct QueryIssiOut : CommandOut {
  static constexpr std::uint32_t kBytes = 112;
  using current_issi = PrmField<0x050, 16>;
  using supported_issi_dw0 = PrmField<0x360, 32>;  ///< bit n: id n is supported
};
static_assert(QueryIssiOut::supported_issi_dw0::kEnd == QueryIssiOut::kBytes * 8);

/// Reserved keys.
struct QuerySpecialContextsIn : CommandIn {};
struct QuerySpecialContextsOut : CommandOut {
  static constexpr std::uint32_t kBytes = 32;
  using dump_fill_mkey = PrmField<0x040, 32>;
  using resd_lkey = PrmField<0x060, 32>;
  using null_mkey = PrmField<0x080, 32>;
};
static_assert(QuerySpecialContextsOut::null_mkey::kEnd <= QuerySpecialContextsOut::kBytes * 8);

/// Link aggregation; a device without it answers bad_opcode.
struct QueryLagIn : CommandIn {};
struct QueryLagOut : CommandOut {
  using port_select_mode = PrmField<0x055, 3>;
  using lag_state = PrmField<0x05d, 3>;
  using tx_remap_affinity_2 = PrmField<0x074, 4>;
  using tx_remap_affinity_1 = PrmField<0x07c, 4>;
};
static_assert(QueryLagOut::tx_remap_affinity_1::kEnd == QueryLagOut::kBytes * 8);

}  // namespace belfry::wire::prm
// NOLINTEND(readability-identifier-naming)
