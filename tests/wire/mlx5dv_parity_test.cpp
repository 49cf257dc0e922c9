/// \file
/// Our formats against the vendor's header, field by field. Sizes alone would miss a pair of fields
/// that changed places, so offsets, constants and whole WQEs are compared.

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstring>

#include "belfry/wire/cqe.hpp"
#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/syndrome.hpp"
#include "belfry/wire/wqe.hpp"

namespace belfry::wire {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_FIELD(ours, our_field, theirs, their_field)                      \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(ours::our_field) == sizeof(theirs::their_field))

SAME_SIZE(ControlSegment, mlx5_wqe_ctrl_seg);
SAME_FIELD(ControlSegment, opmod_index_opcode, mlx5_wqe_ctrl_seg, opmod_idx_opcode);
SAME_FIELD(ControlSegment, qpn_ds, mlx5_wqe_ctrl_seg, qpn_ds);
SAME_FIELD(ControlSegment, signature, mlx5_wqe_ctrl_seg, signature);
SAME_FIELD(ControlSegment, dci_stream, mlx5_wqe_ctrl_seg, dci_stream_channel_id);
SAME_FIELD(ControlSegment, flags, mlx5_wqe_ctrl_seg, fm_ce_se);
SAME_FIELD(ControlSegment, immediate, mlx5_wqe_ctrl_seg, imm);

SAME_SIZE(RemoteAddressSegment, mlx5_wqe_raddr_seg);
SAME_FIELD(RemoteAddressSegment, address, mlx5_wqe_raddr_seg, raddr);
SAME_FIELD(RemoteAddressSegment, rkey, mlx5_wqe_raddr_seg, rkey);

SAME_SIZE(DataSegment, mlx5_wqe_data_seg);
SAME_FIELD(DataSegment, byte_count, mlx5_wqe_data_seg, byte_count);
SAME_FIELD(DataSegment, lkey, mlx5_wqe_data_seg, lkey);
SAME_FIELD(DataSegment, address, mlx5_wqe_data_seg, addr);

SAME_SIZE(InlineHeader, mlx5_wqe_inl_data_seg);
SAME_FIELD(InlineHeader, flag_byte_count, mlx5_wqe_inl_data_seg, byte_count);

SAME_SIZE(AtomicSegment, mlx5_wqe_atomic_seg);
SAME_FIELD(AtomicSegment, swap_or_add, mlx5_wqe_atomic_seg, swap_add);
SAME_FIELD(AtomicSegment, compare, mlx5_wqe_atomic_seg, compare);

SAME_SIZE(AddressVector, mlx5_wqe_av);
SAME_FIELD(AddressVector, base.dc_key_or_qkey, mlx5_wqe_av, key);
SAME_FIELD(AddressVector, base.destination_qp, mlx5_wqe_av, dqp_dct);
SAME_FIELD(AddressVector, base.stat_rate_sl, mlx5_wqe_av, stat_rate_sl);
SAME_FIELD(AddressVector, base.fl_mlid, mlx5_wqe_av, fl_mlid);
SAME_FIELD(AddressVector, base.rlid_or_udp_port, mlx5_wqe_av, rlid);
SAME_FIELD(AddressVector, destination_mac, mlx5_wqe_av, rmac);
SAME_FIELD(AddressVector, traffic_class, mlx5_wqe_av, tclass);
SAME_FIELD(AddressVector, hop_limit, mlx5_wqe_av, hop_limit);
SAME_FIELD(AddressVector, grh_gid_flow, mlx5_wqe_av, grh_gid_fl);
SAME_FIELD(AddressVector, destination_gid, mlx5_wqe_av, rgid);

SAME_SIZE(Cqe, mlx5_cqe64);
SAME_FIELD(Cqe, wqe_id, mlx5_cqe64, wqe_id);
SAME_FIELD(Cqe, ml_path, mlx5_cqe64, ml_path);
SAME_FIELD(Cqe, slid, mlx5_cqe64, slid);
SAME_FIELD(Cqe, flags_remote_qpn, mlx5_cqe64, flags_rqpn);
SAME_FIELD(Cqe, srqn_user_index, mlx5_cqe64, srqn_uidx);
SAME_FIELD(Cqe, immediate_or_key, mlx5_cqe64, imm_inval_pkey);
SAME_FIELD(Cqe, app, mlx5_cqe64, app);
SAME_FIELD(Cqe, app_opcode, mlx5_cqe64, app_op);
SAME_FIELD(Cqe, app_info, mlx5_cqe64, app_info);
SAME_FIELD(Cqe, byte_count, mlx5_cqe64, byte_cnt);
SAME_FIELD(Cqe, timestamp, mlx5_cqe64, timestamp);
SAME_FIELD(Cqe, opcode_qpn, mlx5_cqe64, sop_drop_qpn);
SAME_FIELD(Cqe, wqe_counter, mlx5_cqe64, wqe_counter);
SAME_FIELD(Cqe, signature, mlx5_cqe64, signature);
SAME_FIELD(Cqe, op_own, mlx5_cqe64, op_own);

SAME_SIZE(ErrorCqe, mlx5_err_cqe);
SAME_FIELD(ErrorCqe, srqn_user_index, mlx5_err_cqe, srqn);
SAME_FIELD(ErrorCqe, vendor_syndrome, mlx5_err_cqe, vendor_err_synd);
SAME_FIELD(ErrorCqe, syndrome, mlx5_err_cqe, syndrome);
SAME_FIELD(ErrorCqe, opcode_qpn, mlx5_err_cqe, s_wqe_opcode_qpn);
SAME_FIELD(ErrorCqe, wqe_counter, mlx5_err_cqe, wqe_counter);
SAME_FIELD(ErrorCqe, signature, mlx5_err_cqe, signature);
SAME_FIELD(ErrorCqe, op_own, mlx5_err_cqe, op_own);

#undef SAME_FIELD
#undef SAME_SIZE

template <class Enum>
constexpr unsigned number(Enum value) {
  return static_cast<unsigned>(value);
}

// Guards: an opcode or flag with another number than the device's.
static_assert(number(WqeOpcode::nop) == MLX5_OPCODE_NOP);
static_assert(number(WqeOpcode::send_invalidate) == MLX5_OPCODE_SEND_INVAL);
static_assert(number(WqeOpcode::rdma_write) == MLX5_OPCODE_RDMA_WRITE);
static_assert(number(WqeOpcode::rdma_write_immediate) == MLX5_OPCODE_RDMA_WRITE_IMM);
static_assert(number(WqeOpcode::send) == MLX5_OPCODE_SEND);
static_assert(number(WqeOpcode::send_immediate) == MLX5_OPCODE_SEND_IMM);
static_assert(number(WqeOpcode::rdma_read) == MLX5_OPCODE_RDMA_READ);
static_assert(number(WqeOpcode::atomic_compare_swap) == MLX5_OPCODE_ATOMIC_CS);
static_assert(number(WqeOpcode::atomic_fetch_add) == MLX5_OPCODE_ATOMIC_FA);
static_assert(number(WqeOpcode::atomic_masked_compare_swap) == MLX5_OPCODE_ATOMIC_MASKED_CS);
static_assert(number(WqeOpcode::atomic_masked_fetch_add) == MLX5_OPCODE_ATOMIC_MASKED_FA);
static_assert(number(WqeOpcode::local_invalidate) == MLX5_OPCODE_LOCAL_INVAL);
static_assert(number(WqeOpcode::umr) == MLX5_OPCODE_UMR);

static_assert(kWqeSolicited == MLX5_WQE_CTRL_SOLICITED);
static_assert(kWqeCompletionAlways == MLX5_WQE_CTRL_CQ_UPDATE);
static_assert(kWqeFence == MLX5_WQE_CTRL_FENCE);
static_assert(kWqeFenceInitiatorSmall == MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE);
static_assert(kBlockBytes == MLX5_SEND_WQE_BB);
static_assert(kInlineFlag == static_cast<std::uint32_t>(MLX5_INLINE_SEG));
static_assert(kInvalidLkey == MLX5_INVALID_LKEY);
static_assert(kAddressVectorExtended == static_cast<std::uint32_t>(MLX5_EXTENDED_UD_AV));

static_assert(number(CqeOpcode::requester) == MLX5_CQE_REQ);
static_assert(number(CqeOpcode::responder_write_immediate) == MLX5_CQE_RESP_WR_IMM);
static_assert(number(CqeOpcode::responder_send) == MLX5_CQE_RESP_SEND);
static_assert(number(CqeOpcode::responder_send_immediate) == MLX5_CQE_RESP_SEND_IMM);
static_assert(number(CqeOpcode::responder_send_invalidate) == MLX5_CQE_RESP_SEND_INV);
static_assert(number(CqeOpcode::resize_cq) == MLX5_CQE_RESIZE_CQ);
static_assert(number(CqeOpcode::no_packet) == MLX5_CQE_NO_PACKET);
static_assert(number(CqeOpcode::signature_error) == MLX5_CQE_SIG_ERR);
static_assert(number(CqeOpcode::requester_error) == MLX5_CQE_REQ_ERR);
static_assert(number(CqeOpcode::responder_error) == MLX5_CQE_RESP_ERR);
static_assert(number(CqeOpcode::invalid) == MLX5_CQE_INVALID);
static_assert(kCqeOwnerMask == MLX5_CQE_OWNER_MASK);

static_assert(number(Syndrome::local_length) == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
static_assert(number(Syndrome::local_qp_operation) == MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
static_assert(number(Syndrome::local_protection) == MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
static_assert(number(Syndrome::flushed) == MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
static_assert(number(Syndrome::memory_window_bind) == MLX5_CQE_SYNDROME_MW_BIND_ERR);
static_assert(number(Syndrome::bad_response) == MLX5_CQE_SYNDROME_BAD_RESP_ERR);
static_assert(number(Syndrome::local_access) == MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR);
static_assert(number(Syndrome::remote_invalid_request) == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
static_assert(number(Syndrome::remote_access) == MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
static_assert(number(Syndrome::remote_operation) == MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
static_assert(number(Syndrome::transport_retry_exceeded) == MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
static_assert(number(Syndrome::rnr_retry_exceeded) == MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
static_assert(number(Syndrome::remote_aborted) == MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR);

static_assert(kUarCqDoorbell == MLX5_CQ_DOORBELL);
static_assert(kCqArmNext == MLX5_CQ_DB_REQ_NOT);
static_assert(kCqArmSolicited == MLX5_CQ_DB_REQ_NOT_SOL);
static_assert(offsetof(QpDoorbellRecord, receive) == MLX5_RCV_DBR * 4);
static_assert(offsetof(QpDoorbellRecord, send) == MLX5_SND_DBR * 4);

template <class T>
void expect_same_bytes(const T& ours, const void* theirs, std::size_t size) {
  ASSERT_EQ(sizeof(ours), size);
  EXPECT_EQ(std::memcmp(&ours, theirs, size), 0);
}

// Guards: any difference in the bytes of a whole WQE: fields, order, swaps, padding.
TEST(Mlx5dvParity, SignalledWriteOfOnePointer) {
  struct {
    ControlSegment control;
    RemoteAddressSegment remote;
    DataSegment data;
  } ours{};
  ours.control = make_control(WqeOpcode::rdma_write, 0xfff1, 0xabcdef, 3, kWqeCompletionAlways | kWqeFence,
                              Be32::from_raw(0x11223344));
  ours.remote.address.set(0x1122334455667788);
  ours.remote.rkey.set(0x99aabbcc);
  ours.data.byte_count.set(4096);
  ours.data.lkey.set(0xddeeff00);
  ours.data.address.set(0x0000700000001000);

  struct {
    mlx5_wqe_ctrl_seg control;
    mlx5_wqe_raddr_seg remote;
    mlx5_wqe_data_seg data;
  } theirs{};
  mlx5dv_set_ctrl_seg(&theirs.control, 0xfff1, MLX5_OPCODE_RDMA_WRITE, 0, 0xabcdef,
                      MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_FENCE, 3, 0, 0x11223344);
  theirs.remote.raddr = htobe64(0x1122334455667788);
  theirs.remote.rkey = htobe32(0x99aabbcc);
  mlx5dv_set_data_seg(&theirs.data, 4096, 0xddeeff00, 0x0000700000001000);
  expect_same_bytes(ours, &theirs, sizeof theirs);
}

// Guards: the opcode modifier, which selects the size of masked atomics.
TEST(Mlx5dvParity, ControlSegmentOfAMaskedAtomic) {
  const ControlSegment ours =
      make_control(WqeOpcode::atomic_masked_fetch_add, 7, 1, 4, 0, Be32(0), kOpmodMaskedAtomic8);
  mlx5_wqe_ctrl_seg theirs{};
  mlx5dv_set_ctrl_seg(&theirs, 7, MLX5_OPCODE_ATOMIC_MASKED_FA, 0x09, 1, 0, 4, 0, 0);
  expect_same_bytes(ours, &theirs, sizeof theirs);
}

// Guards: the address vector of UD and DC, whose first 16 B are also a form of their own.
TEST(Mlx5dvParity, FullAddressVector) {
  std::uint8_t mac[6] = {1, 2, 3, 4, 5, 6};
  std::uint8_t gid[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  mlx5_wqe_datagram_seg theirs{};
  mlx5dv_set_dgram_seg(&theirs, 0x0102030405060708, 0x00123456, 1, 0x35, 0x81, 0xc123, mac, 0x68, 64,
                       (1u << 30) | (3u << 20) | 0x12345, gid);
  AddressVector ours{};
  ours.base.dc_key_or_qkey.set(0x0102030405060708);
  ours.base.destination_qp.set(kAddressVectorExtended | 0x123456);
  ours.base.stat_rate_sl = 0x35;
  ours.base.fl_mlid = 0x81;
  ours.base.rlid_or_udp_port.set(0xc123);
  std::memcpy(ours.destination_mac, mac, sizeof mac);
  ours.traffic_class = 0x68;
  ours.hop_limit = 64;
  ours.grh_gid_flow.set((1u << 30) | (3u << 20) | 0x12345);
  std::memcpy(ours.destination_gid, gid, sizeof gid);
  expect_same_bytes(ours, &theirs, sizeof theirs);
}

// Guards: op_own taken apart in another way than rdma-core does.
TEST(Mlx5dvParity, CompletionStateByte) {
  mlx5_cqe64 theirs{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    theirs.op_own = static_cast<std::uint8_t>(byte);
    Cqe ours{};
    ours.op_own = theirs.op_own;
    EXPECT_EQ(number(ours.opcode()), mlx5dv_get_cqe_opcode(&theirs));
    EXPECT_EQ(ours.owner(), mlx5dv_get_cqe_owner(&theirs) != 0);
    EXPECT_EQ((ours.op_own & kCqeSolicited) != 0, mlx5dv_get_cqe_se(&theirs) != 0);
    EXPECT_EQ(number(cqe_format(ours.op_own)), mlx5dv_get_cqe_format(&theirs));
  }
}

}  // namespace
}  // namespace belfry::wire
