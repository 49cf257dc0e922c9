#pragma once
/// \file
/// Completions of verbs queues, as typed statuses, polled with a deadline. Data path: no exceptions.

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "belfry/host/deadline.hpp"
#include "belfry/host/errors.hpp"

namespace belfry::host {

/// Values of enum ibv_wc_status. (Syndromes of CQEs are another name space: wire::Syndrome.)
enum class CompletionStatus : std::uint8_t {
  success = IBV_WC_SUCCESS,
  local_length = IBV_WC_LOC_LEN_ERR,
  local_qp_operation = IBV_WC_LOC_QP_OP_ERR,
  local_protection = IBV_WC_LOC_PROT_ERR,
  flushed = IBV_WC_WR_FLUSH_ERR,
  memory_window_bind = IBV_WC_MW_BIND_ERR,
  bad_response = IBV_WC_BAD_RESP_ERR,
  local_access = IBV_WC_LOC_ACCESS_ERR,
  remote_invalid_request = IBV_WC_REM_INV_REQ_ERR,
  remote_access = IBV_WC_REM_ACCESS_ERR,
  remote_operation = IBV_WC_REM_OP_ERR,
  retry_exceeded = IBV_WC_RETRY_EXC_ERR,
  rnr_retry_exceeded = IBV_WC_RNR_RETRY_EXC_ERR,
  remote_aborted = IBV_WC_REM_ABORT_ERR,
  fatal = IBV_WC_FATAL_ERR,
  general = IBV_WC_GENERAL_ERR,
};

struct Completion {
  std::uint64_t wr_id = 0;
  CompletionStatus status = CompletionStatus::success;
  std::uint32_t vendor_syndrome = 0;
  std::uint32_t qpn = 0;
  std::uint32_t byte_count = 0;  ///< of a receive or a READ; only if successful
  std::uint32_t immediate = 0;   ///< host order; valid if has_immediate
  bool has_immediate = false;

  bool ok() const { return status == CompletionStatus::success; }
};

/// "remote access error (status 10, vendor syndrome 0x88) on QP 0x000123, request 7".
std::string describe(const Completion& completion);

/// The same as an Error of kind completion, whose remedy explains the status.
Error completion_error(const Completion& completion);

enum class PollStatus : std::uint8_t {
  done,       ///< all that was asked for, all successful
  timed_out,  ///< the deadline passed first
  failed,     ///< a completion in error came; it is the last one returned
  broken,     ///< the CQ itself cannot be polled any more (overrun)
};

struct PollResult {
  PollStatus status = PollStatus::done;
  std::uint32_t count = 0;  ///< completions that came
};

/// The typed form of a work completion.
inline Completion to_completion(const ibv_wc& wc) {
  Completion c;
  c.wr_id = wc.wr_id;
  c.status = static_cast<CompletionStatus>(wc.status);
  c.vendor_syndrome = wc.vendor_err;
  c.qpn = wc.qp_num;
  if (wc.status == IBV_WC_SUCCESS) {
    c.byte_count = wc.byte_len;
    c.has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
    if (c.has_immediate) c.immediate = __builtin_bswap32(wc.imm_data);
  }
  return c;
}

/// Polls until `out` is full, a completion fails, or the deadline passes. Spins: this is the fast path.
/// \param out receives the completions in order; entries past `count` are untouched
inline PollResult poll(ibv_cq* cq, std::span<Completion> out, Deadline deadline) {
  // The clock costs more than an empty poll, so it is read once in a while.
  constexpr std::uint32_t kPollsPerClockRead = 64;
  PollResult result;
  std::uint32_t empty_polls = 0;
  while (result.count < out.size()) {
    ibv_wc wc;
    const int polled = ibv_poll_cq(cq, 1, &wc);
    if (polled > 0) {
      Completion& completion = out[result.count++];
      completion = to_completion(wc);
      if (!completion.ok()) {
        result.status = PollStatus::failed;
        return result;
      }
      continue;
    }
    if (polled < 0) {
      result.status = PollStatus::broken;
      return result;
    }
    if (++empty_polls % kPollsPerClockRead == 0 && Clock::now() >= deadline) {
      result.status = PollStatus::timed_out;
      return result;
    }
  }
  return result;
}

struct OnePoll {
  PollStatus status = PollStatus::done;
  Completion completion;  ///< valid if done or failed
};

/// Waits for one completion.
inline OnePoll poll_one(ibv_cq* cq, Deadline deadline) {
  OnePoll one;
  one.status = poll(cq, std::span<Completion>(&one.completion, 1), deadline).status;
  return one;
}

}  // namespace belfry::host
