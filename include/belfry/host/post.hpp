#pragma once
/// \file
/// Posting to verbs queues: thin, inlined, no exceptions. Each returns 0 or a positive errno: ENOMEM,
/// the queue is full (poll and try again); EINVAL, the request or the QP's state does not allow it.

#include <infiniband/verbs.h>

#include <cstdint>

#include "belfry/host/memory.hpp"
#include "belfry/host/verbs_queue.hpp"

namespace belfry::host {

/// Local bytes: in a registered region, or anywhere where a post copies them (inline).
struct LocalSlice {
  const void* address = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t lkey = 0;  ///< ignored by inline posts
};

/// `bytes` from `offset` of a region; the caller keeps within it.
inline LocalSlice slice(const Memory& memory, std::size_t offset, std::uint32_t bytes) {
  return {memory.data() + offset, bytes, memory.lkey()};
}

struct RemoteAddress {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

inline RemoteAddress at(const WindowDescription& window, std::uint64_t offset) {
  return {window.address + offset, window.rkey};
}

enum class Signal : std::uint8_t { no, yes };

namespace detail {

inline ibv_send_wr make_request(ibv_wr_opcode opcode, std::uint64_t wr_id, ibv_sge* segment, Signal signal) {
  ibv_send_wr request{};
  request.wr_id = wr_id;
  request.sg_list = segment;
  request.num_sge = segment != nullptr && segment->length != 0 ? 1 : 0;
  request.opcode = opcode;
  request.send_flags = signal == Signal::yes ? unsigned{IBV_SEND_SIGNALED} : 0u;
  return request;
}

inline ibv_sge make_segment(const LocalSlice& local) {
  return {reinterpret_cast<std::uint64_t>(local.address), local.bytes, local.lkey};
}

inline int submit(const VerbsQueue& queue, ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(queue.qp(), &request, &bad);
}

}  // namespace detail

/// RDMA WRITE; the payload is fetched from the region by the NIC, and stays untouched until completion.
inline int post_write(const VerbsQueue& queue, const LocalSlice& local, const RemoteAddress& remote,
                      std::uint64_t wr_id, Signal signal = Signal::yes) {
  ibv_sge segment = detail::make_segment(local);
  ibv_send_wr request = detail::make_request(IBV_WR_RDMA_WRITE, wr_id, &segment, signal);
  request.wr.rdma.remote_addr = remote.address;
  request.wr.rdma.rkey = remote.rkey;
  return detail::submit(queue, request);
}

/// RDMA WRITE of at most max_inline() bytes, copied into the WQE: reusable when this returns.
inline int post_write_inline(const VerbsQueue& queue, const LocalSlice& local, const RemoteAddress& remote,
                             std::uint64_t wr_id, Signal signal = Signal::yes) {
  ibv_sge segment = detail::make_segment(local);
  ibv_send_wr request = detail::make_request(IBV_WR_RDMA_WRITE, wr_id, &segment, signal);
  request.send_flags |= IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = remote.address;
  request.wr.rdma.rkey = remote.rkey;
  return detail::submit(queue, request);
}

/// RDMA WRITE that completes a receive at the peer and hands it `immediate`.
inline int post_write_immediate(const VerbsQueue& queue, const LocalSlice& local, const RemoteAddress& remote,
                                std::uint32_t immediate, std::uint64_t wr_id, Signal signal = Signal::yes) {
  ibv_sge segment = detail::make_segment(local);
  ibv_send_wr request = detail::make_request(IBV_WR_RDMA_WRITE_WITH_IMM, wr_id, &segment, signal);
  request.imm_data = __builtin_bswap32(immediate);
  request.wr.rdma.remote_addr = remote.address;
  request.wr.rdma.rkey = remote.rkey;
  return detail::submit(queue, request);
}

/// RDMA READ into `local`, whose region needs local_write.
inline int post_read(const VerbsQueue& queue, const LocalSlice& local, const RemoteAddress& remote,
                     std::uint64_t wr_id, Signal signal = Signal::yes) {
  ibv_sge segment = detail::make_segment(local);
  ibv_send_wr request = detail::make_request(IBV_WR_RDMA_READ, wr_id, &segment, signal);
  request.wr.rdma.remote_addr = remote.address;
  request.wr.rdma.rkey = remote.rkey;
  return detail::submit(queue, request);
}

/// 8 B fetch-and-add at an 8 B aligned address; the old value lands in `result` (8 B, local_write).
inline int post_fetch_add(const VerbsQueue& queue, const LocalSlice& result, const RemoteAddress& remote,
                          std::uint64_t add, std::uint64_t wr_id, Signal signal = Signal::yes) {
  ibv_sge segment = detail::make_segment(result);
  ibv_send_wr request = detail::make_request(IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id, &segment, signal);
  request.wr.atomic.remote_addr = remote.address;
  request.wr.atomic.rkey = remote.rkey;
  request.wr.atomic.compare_add = add;
  return detail::submit(queue, request);
}

/// 8 B compare-and-swap; as post_fetch_add.
inline int post_compare_swap(const VerbsQueue& queue, const LocalSlice& result, const RemoteAddress& remote,
                             std::uint64_t compare, std::uint64_t swap, std::uint64_t wr_id,
                             Signal signal = Signal::yes) {
  ibv_sge segment = detail::make_segment(result);
  ibv_send_wr request = detail::make_request(IBV_WR_ATOMIC_CMP_AND_SWP, wr_id, &segment, signal);
  request.wr.atomic.remote_addr = remote.address;
  request.wr.atomic.rkey = remote.rkey;
  request.wr.atomic.compare_add = compare;
  request.wr.atomic.swap = swap;
  return detail::submit(queue, request);
}

inline int post_send(const VerbsQueue& queue, const LocalSlice& local, std::uint64_t wr_id,
                     Signal signal = Signal::yes) {
  ibv_sge segment = detail::make_segment(local);
  ibv_send_wr request = detail::make_request(IBV_WR_SEND, wr_id, &segment, signal);
  return detail::submit(queue, request);
}

/// A receive of at most `local.bytes`; its region needs local_write.
inline int post_receive(const VerbsQueue& queue, const LocalSlice& local, std::uint64_t wr_id) {
  ibv_sge segment = detail::make_segment(local);
  ibv_recv_wr request{};
  request.wr_id = wr_id;
  request.sg_list = &segment;
  request.num_sge = local.bytes != 0 ? 1 : 0;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(queue.qp(), &request, &bad);
}

}  // namespace belfry::host
