#pragma once
/// \file
/// Syndromes of error CQEs in words. A syndrome lives in the mlx5 name space (wire::Syndrome); an
/// ibverbs status is another number for the same fault, and the two overlap: 0x12 is "remote invalid
/// request" here, while ibverbs' 12 is "transport retry exceeded". Sources: rdma-core's mlx5dv.h and
/// providers/mlx5/cq.c for the mapping. Vendor syndromes are not documented; the ones below are
/// listed with a public report in which they were seen.

#include <cstdint>

#include "belfry/port/function.hpp"
#include "belfry/wire/cqe.hpp"

namespace belfry::wire {

/// \return the value of enum ibv_wc_status that libmlx5 reports for a syndrome; 21 (general error)
///         for one it does not know
BELFRY_FN constexpr std::uint8_t ibverbs_status(Syndrome syndrome) {
  switch (syndrome) {
    case Syndrome::none:
      return 0;
    case Syndrome::local_length:
      return 1;
    case Syndrome::local_qp_operation:
      return 2;
    case Syndrome::local_protection:
      return 4;
    case Syndrome::flushed:
      return 5;
    case Syndrome::memory_window_bind:
      return 6;
    case Syndrome::bad_response:
      return 7;
    case Syndrome::local_access:
      return 8;
    case Syndrome::remote_invalid_request:
      return 9;
    case Syndrome::remote_access:
      return 10;
    case Syndrome::remote_operation:
      return 11;
    case Syndrome::transport_retry_exceeded:
      return 12;
    case Syndrome::rnr_retry_exceeded:
      return 13;
    case Syndrome::remote_aborted:
      return 16;
  }
  return 21;
}

/// \return a short name, "unknown syndrome" for a number that mlx5dv.h does not name
BELFRY_FN constexpr const char* syndrome_name(Syndrome syndrome) {
  switch (syndrome) {
    case Syndrome::none:
      return "no error";
    case Syndrome::local_length:
      return "local length";
    case Syndrome::local_qp_operation:
      return "local QP operation";
    case Syndrome::local_protection:
      return "local protection";
    case Syndrome::flushed:
      return "flushed";
    case Syndrome::memory_window_bind:
      return "memory window bind";
    case Syndrome::bad_response:
      return "bad response";
    case Syndrome::local_access:
      return "local access";
    case Syndrome::remote_invalid_request:
      return "remote invalid request";
    case Syndrome::remote_access:
      return "remote access";
    case Syndrome::remote_operation:
      return "remote operation";
    case Syndrome::transport_retry_exceeded:
      return "transport retry exceeded";
    case Syndrome::rnr_retry_exceeded:
      return "RNR retry exceeded";
    case Syndrome::remote_aborted:
      return "remote aborted";
  }
  return "unknown syndrome";
}

/// A syndrome for people: what it means and what usually helps.
struct SyndromeInfo {
  Syndrome syndrome;
  const char* ibverbs_name;  ///< enumerator of enum ibv_wc_status
  const char* meaning;
  const char* remedy;
};

inline constexpr SyndromeInfo kSyndromes[] = {
    {Syndrome::local_length, "IBV_WC_LOC_LEN_ERR",
     "a message does not fit: longer than the receive buffer, than the port's limit, or than the WQE's list",
     "compare message length, posted receive sizes and max_msg_sz of the port"},
    {Syndrome::local_qp_operation, "IBV_WC_LOC_QP_OP_ERR",
     "the device could not execute the WQE: malformed, an operation this QP may not do, or a bad segment",
     "decode the WQE at the counter (belfry decode wqe): opcode, segment count, QPN, inline length"},
    {Syndrome::local_protection, "IBV_WC_LOC_PROT_ERR",
     "an lkey does not cover the local buffer: wrong key, address, length, domain or access",
     "check lkey and address range against the registration; for GPU memory check dma-buf or nvidia-peermem"},
    {Syndrome::flushed, "IBV_WC_WR_FLUSH_ERR",
     "the QP was already in error when this WQE's turn came; it was not executed",
     "look for the first error on this QP: a flush is a consequence, never the cause"},
    {Syndrome::memory_window_bind, "IBV_WC_MW_BIND_ERR",
     "a memory window could not be bound: the region does not allow it or the range is outside",
     "register the region with memory-window access and keep the window inside it"},
    {Syndrome::bad_response, "IBV_WC_BAD_RESP_ERR",
     "the responder answered with a packet that makes no sense here",
     "check that both ends agree on QPN, first PSNs and path MTU"},
    {Syndrome::local_access, "IBV_WC_LOC_ACCESS_ERR",
     "the responder's own buffer refused the access while a request was placed",
     "register the receive buffer with local write access, and keep it registered"},
    {Syndrome::remote_invalid_request, "IBV_WC_REM_INV_REQ_ERR",
     "the peer found the request invalid: an operation its QP does not allow, or a wrong length",
     "enable the operation on the peer's QP (remote write, read, atomic), give it READ and atomic depth, "
     "post receives that are long enough, keep atomics aligned"},
    {Syndrome::remote_access, "IBV_WC_REM_ACCESS_ERR",
     "the peer's memory refused: wrong rkey, range, domain or access rights",
     "check rkey, remote address and length against the peer's registration and its access flags"},
    {Syndrome::remote_operation, "IBV_WC_REM_OP_ERR",
     "the peer could not complete the operation for a reason of its own",
     "look at the peer's QP and asynchronous events; it often has the first error"},
    {Syndrome::transport_retry_exceeded, "IBV_WC_RETRY_EXC_ERR",
     "no answer from the peer after every retry: gone, not in RTR, unreachable, or the timeout is too short",
     "check that the peer lives and its QP is in RTR or RTS; on RoCE check GID index and type, MTU, traffic "
     "class and lossless setup; then timeout and retry_cnt"},
    {Syndrome::rnr_retry_exceeded, "IBV_WC_RNR_RETRY_EXC_ERR",
     "the peer had no receive posted for longer than the retries allow",
     "post receives before the peer sends, or set rnr_retry to 7 (for ever)"},
    {Syndrome::remote_aborted, "IBV_WC_REM_ABORT_ERR", "the peer aborted the operation",
     "look at the peer's QP and asynchronous events"},
};

/// \return what is known of a syndrome, or null
constexpr const SyndromeInfo* find_syndrome(std::uint8_t syndrome) {
  for (const SyndromeInfo& info : kSyndromes) {
    if (static_cast<std::uint8_t>(info.syndrome) == syndrome) return &info;
  }
  return nullptr;
}

/// A vendor syndrome, the fault it came with, and where that was reported.
struct VendorSyndromeInfo {
  std::uint8_t vendor_syndrome;
  Syndrome seen_with;
  const char* source;
};

inline constexpr VendorSyndromeInfo kVendorSyndromes[] = {
    {0x51, Syndrome::local_protection, "github.com/linux-rdma/perftest/issues/173"},
    {0x52, Syndrome::local_protection, "github.com/spdk/spdk/issues/961"},
    {0x81, Syndrome::transport_retry_exceeded, "github.com/openucx/ucx/issues/5199"},
    {0x88, Syndrome::remote_access, "github.com/spdk/spdk/issues/964"},
    {0x89, Syndrome::remote_operation, "github.com/openucx/ucx/issues/5472"},
    {0x8a, Syndrome::remote_invalid_request, "github.com/charmplusplus/charm/issues/2532"},
    {0xf4, Syndrome::flushed, "github.com/openucx/ucx/pull/9209"},
    {0xf9, Syndrome::flushed, "github.com/NVIDIA/nccl/issues/1353"},
};

/// \return where a vendor syndrome was seen, or null
constexpr const VendorSyndromeInfo* find_vendor_syndrome(std::uint8_t vendor_syndrome) {
  for (const VendorSyndromeInfo& info : kVendorSyndromes) {
    if (info.vendor_syndrome == vendor_syndrome) return &info;
  }
  return nullptr;
}

}  // namespace belfry::wire
