#pragma once
/// \file
/// Stage four of the NIC: the bytes of a completion. One source for the CPU and the GPU engine; how
/// the entry is stored (op_own last) is the mover's business.

#include <cstdint>

#include "belfry/port/function.hpp"
#include "belfry/wire/cqe.hpp"
#include "belfry/wire/wqe.hpp"

namespace belfry::softnic {

/// What a completion says, before it is laid out.
struct Completion {
  wire::CqeOpcode opcode = wire::CqeOpcode::requester;
  wire::Syndrome syndrome = wire::Syndrome::none;
  std::uint8_t vendor = 0;
  std::uint8_t wqe_opcode = 0;  ///< requester: the WQE's opcode
  bool solicited = false;
  std::uint16_t counter = 0;
  std::uint32_t qpn = 0;
  std::uint32_t user_index = 0;
  std::uint32_t bytes = 0;
  std::uint32_t remote_qpn = 0;
  std::uint16_t slid = 0;
  Be32 immediate{};

  BELFRY_FN bool error() const {
    return opcode == wire::CqeOpcode::requester_error || opcode == wire::CqeOpcode::responder_error;
  }
};

/// \param owner the lap bit of the entry it goes to
BELFRY_FN inline wire::Cqe build_cqe(const Completion& c, bool owner) {
  wire::Cqe e{};
  e.slid.set(c.slid);
  e.flags_remote_qpn.set(c.remote_qpn & 0xffffff);
  e.srqn_user_index.set(c.user_index & 0xffffff);
  e.immediate_or_key = c.immediate;
  e.byte_count.set(c.bytes);
  e.opcode_qpn.set((static_cast<std::uint32_t>(c.wqe_opcode) << 24) | (c.qpn & 0xffffff));
  e.wqe_counter.set(c.counter);
  e.op_own = wire::make_op_own(c.opcode, c.solicited, owner);
  return e;
}

BELFRY_FN inline wire::ErrorCqe build_error_cqe(const Completion& c, bool owner) {
  wire::ErrorCqe e{};
  e.srqn_user_index.set(c.user_index & 0xffffff);
  e.vendor_syndrome = c.vendor;
  e.syndrome = static_cast<std::uint8_t>(c.syndrome);
  e.opcode_qpn.set((static_cast<std::uint32_t>(c.wqe_opcode) << 24) | (c.qpn & 0xffffff));
  e.wqe_counter.set(c.counter);
  e.op_own = wire::make_op_own(c.opcode, false, owner);
  return e;
}

}  // namespace belfry::softnic
