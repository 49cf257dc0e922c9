#pragma once
/// \file
/// PRM commands of queue pairs. Offsets: Linux, include/linux/mlx5/mlx5_ifc.h; dbr_umem_id,
/// data_in_order and opt_param_mask_95_32: rdma-core, providers/mlx5/mlx5_ifc.h; send_dbr_mode:
/// rdma-core, tests/mlx5_prm_structs.py.

#include <cstdint>

#include "belfry/wire/prm_command.hpp"

// Fields keep the PRM's own lower-case names.
// NOLINTBEGIN(readability-identifier-naming)
namespace belfry::wire::prm {

/// QpContext::state. Not ibverbs' numbers: there 4 is SQD and 5 is SQE.
enum class QpcState : std::uint8_t {
  reset = 0,
  init = 1,
  rtr = 2,
  rts = 3,
  sq_error = 4,
  sq_drained = 5,
  error = 6,
  sq_draining = 7,
  suspended = 9,
};

/// QpContext::st.
enum class ServiceType : std::uint8_t { rc = 0, uc = 1, ud = 2, xrc = 3, dci = 5, dct = 6 };

enum class PathMigration : std::uint8_t { armed = 0, rearm = 1, migrated = 3 };
enum class ReceiveQueueType : std::uint8_t { regular = 0, srq = 1, crq = 2, none = 3 };

/// QpContext::send_dbr_mode.
enum class SendDoorbellMode : std::uint8_t {
  record = 0,              ///< the device reads the doorbell record
  no_record_external = 1,  ///< it trusts the doorbell, which the host or a GPU rings
  no_record_internal = 2,  ///< as above, rung by the device's own cores
};

/// QpContext::atomic_mode.
enum class AtomicMode : std::uint8_t {
  none = 0,
  ib_specification = 1,
  only_8_bytes = 2,
  up_to_8_bytes = 3,
  up_to_16_bytes = 4,
  up_to_32_bytes = 5,
  up_to_64_bytes = 6,
  up_to_128_bytes = 7,
  up_to_256_bytes = 8,
};

enum class TimestampFormat : std::uint8_t { free_running = 0, device_default = 1, real_time = 2 };

/// QpContext::mtu holds ibverbs' code: 1 = 256 B ... 5 = 4096 B.
BELFRY_FN constexpr std::uint32_t mtu_bytes(std::uint32_t code) {
  return code >= 1 && code <= 5 ? 128u << code : 0u;
}
/// \return the code of an exact MTU, 0 for any other size
BELFRY_FN constexpr std::uint32_t mtu_code(std::uint32_t bytes) {
  for (std::uint32_t code = 1; code <= 5; ++code) {
    if (mtu_bytes(code) == bytes) return code;
  }
  return 0;
}

/// Bits of opt_param_mask: which optional parameters a transition carries.
inline constexpr std::uint32_t kOptAlternatePath = 1u << 0;
inline constexpr std::uint32_t kOptRemoteRead = 1u << 1;
inline constexpr std::uint32_t kOptRemoteAtomic = 1u << 2;
inline constexpr std::uint32_t kOptRemoteWrite = 1u << 3;
inline constexpr std::uint32_t kOptPkeyIndex = 1u << 4;
inline constexpr std::uint32_t kOptQkey = 1u << 5;
inline constexpr std::uint32_t kOptRnrTimeout = 1u << 6;
inline constexpr std::uint32_t kOptPrimaryPath = 1u << 7;
inline constexpr std::uint32_t kOptRequesterDepth = 1u << 8;  ///< log_sra_max
inline constexpr std::uint32_t kOptResponderDepth = 1u << 9;  ///< log_rra_max
inline constexpr std::uint32_t kOptPathMigration = 1u << 10;
inline constexpr std::uint32_t kOptRetryCount = 1u << 12;
inline constexpr std::uint32_t kOptRnrRetry = 1u << 13;
inline constexpr std::uint32_t kOptAckTimeout = 1u << 14;
inline constexpr std::uint32_t kOptLagPort = 1u << 15;
inline constexpr std::uint32_t kOptPort = 1u << 16;
inline constexpr std::uint32_t kOptSrq = 1u << 18;
inline constexpr std::uint32_t kOptReceiveCq = 1u << 19;
inline constexpr std::uint32_t kOptDcHandshake = 1u << 20;
inline constexpr std::uint32_t kOptDcKey = 1u << 21;
inline constexpr std::uint32_t kOptCounterSet = 1u << 25;

/// Address path.
struct AddressPath {
  static constexpr std::uint32_t kBytes = 44;
  using fl = PrmField<0x000, 1>;  ///< force loopback
  using free_ar = PrmField<0x001, 1>;
  using pkey_index = PrmField<0x010, 16>;
  using grh = PrmField<0x028, 1>;
  using mlid = PrmField<0x029, 7>;  ///< source path bits
  using rlid = PrmField<0x030, 16>;
  using ack_timeout = PrmField<0x040, 5>;     ///< 4.096 us << n; 0: for ever
  using src_addr_index = PrmField<0x048, 8>;  ///< source GID index
  using stat_rate = PrmField<0x054, 4>;
  using hop_limit = PrmField<0x058, 8>;
  using tclass = PrmField<0x064, 8>;
  using flow_label = PrmField<0x06c, 20>;
  using rgid_rip = PrmBytes<0x080, 16>;  ///< remote GID; IPv4 as ::ffff:a.b.c.d
  using f_dscp = PrmField<0x104, 1>;
  using f_ecn = PrmField<0x105, 1>;
  using f_eth_prio = PrmField<0x107, 1>;
  using ecn = PrmField<0x108, 2>;
  using dscp = PrmField<0x10a, 6>;
  using udp_sport = PrmField<0x110, 16>;
  using dei_cfi = PrmField<0x120, 1>;
  using eth_prio = PrmField<0x121, 3>;
  using sl = PrmField<0x124, 4>;
  using vhca_port_num = PrmField<0x128, 8>;
  using rmac_47_32 = PrmField<0x130, 16>;
  using rmac_31_0 = PrmField<0x140, 32>;
  using rmac = PrmBytes<0x130, 6>;  ///< both of the above, in wire order
};
static_assert(AddressPath::rgid_rip::kEnd == 0x20 * 8);
static_assert(AddressPath::rmac_31_0::kEnd == AddressPath::kBytes * 8);
static_assert(AddressPath::rmac::kEnd == AddressPath::rmac_31_0::kEnd);

/// Queue pair context.
struct QpContext {
  static constexpr std::uint32_t kBytes = 232;
  using state = PrmField<0x000, 4>;  ///< QpcState
  using lag_tx_port_affinity = PrmField<0x004, 4>;
  using st = PrmField<0x008, 8>;        ///< ServiceType
  using pm_state = PrmField<0x013, 2>;  ///< PathMigration
  using req_e2e_credit_mode = PrmField<0x016, 2>;
  using offload_type = PrmField<0x018, 4>;
  using end_padding_mode = PrmField<0x01c, 2>;
  using wq_signature = PrmField<0x020, 1>;
  using block_lb_mc = PrmField<0x021, 1>;
  using latency_sensitive = PrmField<0x023, 1>;
  using drain_sigerr = PrmField<0x025, 1>;
  using pd = PrmField<0x028, 24>;
  using mtu = PrmField<0x040, 3>;            ///< code, see mtu_bytes
  using log_msg_max = PrmField<0x043, 5>;    ///< bytes
  using log_rq_size = PrmField<0x049, 4>;    ///< entries
  using log_rq_stride = PrmField<0x04d, 3>;  ///< bytes of an entry: 16 << n
  using no_sq = PrmField<0x050, 1>;
  using log_sq_size = PrmField<0x051, 4>;  ///< 64 B blocks
  using retry_mode = PrmField<0x056, 2>;
  using ts_format = PrmField<0x058, 2>;  ///< TimestampFormat
  using data_in_order = PrmField<0x05a, 1>;
  using rlky = PrmField<0x05b, 1>;  ///< the reserved lkey may be used
  using ulp_stateless_offload_mode = PrmField<0x05c, 4>;
  using counter_set_id = PrmField<0x060, 8>;
  using uar_page = PrmField<0x068, 24>;
  using send_dbr_mode = PrmField<0x080, 2>;  ///< SendDoorbellMode
  using user_index = PrmField<0x088, 24>;
  using log_page_size = PrmField<0x0a3, 5>;  ///< minus 12
  using remote_qpn = PrmField<0x0a8, 24>;
  using primary_address_path = PrmPart<0x0c0, AddressPath>;
  using secondary_address_path = PrmPart<0x220, AddressPath>;
  using log_ack_req_freq = PrmField<0x380, 4>;
  using log_sra_max = PrmField<0x388, 3>;  ///< READs and atomics in flight as requester
  using retry_count = PrmField<0x38d, 3>;
  using rnr_retry = PrmField<0x390, 3>;  ///< 7: for ever
  using fre = PrmField<0x394, 1>;
  using cur_rnr_retry = PrmField<0x395, 3>;
  using cur_retry_count = PrmField<0x398, 3>;
  using next_send_psn = PrmField<0x3c8, 24>;
  using log_num_dci_stream_channels = PrmField<0x3e3, 5>;
  using cqn_snd = PrmField<0x3e8, 24>;
  using log_num_dci_errored_streams = PrmField<0x403, 5>;
  using deth_sqpn = PrmField<0x408, 24>;
  using last_acked_psn = PrmField<0x448, 24>;
  using ssn = PrmField<0x468, 24>;
  using log_rra_max = PrmField<0x488, 3>;  ///< READs and atomics in flight as responder
  using atomic_mode = PrmField<0x48c, 4>;  ///< AtomicMode
  using rre = PrmField<0x490, 1>;          ///< remote read
  using rwe = PrmField<0x491, 1>;          ///< remote write
  using rae = PrmField<0x492, 1>;          ///< remote atomic
  using page_offset = PrmField<0x494, 6>;  ///< start of the queues in their first page, 64 B units
  using cd_slave_receive = PrmField<0x49d, 1>;
  using cd_slave_send = PrmField<0x49e, 1>;
  using cd_master = PrmField<0x49f, 1>;
  using min_rnr_nak = PrmField<0x4a3, 5>;  ///< timer code, see kRnrTimerMicroseconds
  using next_rcv_psn = PrmField<0x4a8, 24>;
  using xrcd = PrmField<0x4c8, 24>;
  using cqn_rcv = PrmField<0x4e8, 24>;
  using dbr_addr = PrmField<0x500, 64>;  ///< address, or the offset in dbr_umem_id
  using q_key = PrmField<0x540, 32>;
  using rq_type = PrmField<0x565, 3>;  ///< ReceiveQueueType
  using srqn_rmpn_xrqn = PrmField<0x568, 24>;
  using rmsn = PrmField<0x588, 24>;
  using hw_sq_wqebb_counter = PrmField<0x5a0, 16>;  ///< blocks that the device has executed
  using sw_sq_wqebb_counter = PrmField<0x5b0, 16>;  ///< blocks that doorbells have announced
  using hw_rq_counter = PrmField<0x5c0, 32>;
  using sw_rq_counter = PrmField<0x5e0, 32>;
  using cgs = PrmField<0x62f, 1>;
  using cs_req = PrmField<0x630, 8>;  ///< scatter of small READ and atomic results into the CQE
  using cs_res = PrmField<0x638, 8>;  ///< scatter of small receives into the CQE
  using dc_access_key = PrmField<0x640, 64>;
  using dbr_umem_valid = PrmField<0x683, 1>;
  using dbr_umem_id = PrmField<0x720, 32>;
};
static_assert(QpContext::remote_qpn::kEnd == QpContext::primary_address_path::kBit);
static_assert(QpContext::primary_address_path::kEnd == QpContext::secondary_address_path::kBit);
static_assert(QpContext::secondary_address_path::kEnd == QpContext::log_ack_req_freq::kBit);
static_assert(QpContext::cqn_rcv::kEnd == QpContext::dbr_addr::kBit);
static_assert(QpContext::cs_res::kEnd == QpContext::dc_access_key::kBit);
static_assert(QpContext::dbr_umem_id::kEnd == QpContext::kBytes * 8);

struct CreateQpIn : CommandIn {
  static constexpr std::uint32_t kBytes = 272;  ///< page addresses follow where there is no umem
  using qpc_ext = PrmField<0x040, 1>;
  using input_qpn = PrmField<0x048, 24>;
  using opt_param_mask = PrmField<0x080, 32>;
  using ece = PrmField<0x0a0, 32>;
  using qpc = PrmPart<0x0c0, QpContext>;
  using wq_umem_offset = PrmField<0x800, 64>;
  using wq_umem_id = PrmField<0x840, 32>;
  using wq_umem_valid = PrmField<0x860, 1>;
};
static_assert(CreateQpIn::qpc::kEnd == CreateQpIn::wq_umem_offset::kBit);
static_assert(CreateQpIn::wq_umem_offset::kEnd == CreateQpIn::wq_umem_id::kBit);
static_assert(CreateQpIn::wq_umem_id::kEnd == CreateQpIn::wq_umem_valid::kBit);
static_assert(CreateQpIn::wq_umem_valid::kBit / 8 + 4 == CreateQpIn::kBytes);

struct CreateQpOut : CommandOut {
  using qpn = PrmField<0x048, 24>;
  using ece = PrmField<0x060, 32>;
};

struct DestroyQpIn : CommandIn {
  using qpn = PrmField<0x048, 24>;
};
struct DestroyQpOut : CommandOut {};

/// The one layout of RST2INIT, INIT2INIT, INIT2RTR, RTR2RTS, RTS2RTS, SQERR2RTS and SQD_RTS.
struct ModifyQpIn : CommandIn {
  static constexpr std::uint32_t kBytes = 272;
  using qpc_ext = PrmField<0x040, 1>;  ///< an extended context follows, 464 B in all
  using qpn = PrmField<0x048, 24>;
  using opt_param_mask = PrmField<0x080, 32>;
  using ece = PrmField<0x0a0, 32>;
  using qpc = PrmPart<0x0c0, QpContext>;
  using opt_param_mask_95_32 = PrmField<0x840, 64>;
};
static_assert(ModifyQpIn::qpc::kEnd == CreateQpIn::qpc::kEnd);
static_assert(ModifyQpIn::opt_param_mask_95_32::kEnd == ModifyQpIn::kBytes * 8);
struct ModifyQpOut : CommandOut {
  using ece = PrmField<0x060, 32>;
};

/// 2ERR_QP and 2RST_QP.
struct StopQpIn : CommandIn {
  using qpn = PrmField<0x048, 24>;
};
struct StopQpOut : CommandOut {};

struct QueryQpIn : CommandIn {
  using qpn = PrmField<0x048, 24>;
};
struct QueryQpOut : CommandOut {
  static constexpr std::uint32_t kBytes = 272;
  using opt_param_mask = PrmField<0x080, 32>;
  using ece = PrmField<0x0a0, 32>;
  using qpc = PrmPart<0x0c0, QpContext>;
};
static_assert(QueryQpOut::qpc::kBit == CreateQpIn::qpc::kBit);

}  // namespace belfry::wire::prm
// NOLINTEND(readability-identifier-naming)
