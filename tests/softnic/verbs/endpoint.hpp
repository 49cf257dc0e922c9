#pragma once
/// \file
/// A verbs endpoint for tests: unmodified libibverbs and libmlx5, nothing of ours in between. The
/// programs that use it link belfry-softnic ahead of libibverbs.

#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace belfry::softnic::test {

/// What the other end must know.
struct Address {
  std::uint16_t lid = 0;
  std::uint8_t global = 0;
  std::uint8_t reserved = 0;
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t memory = 0;
  std::uint64_t bytes = 0;
  ibv_gid gid{};
};

template <class T>
T* checked(T* p, const char* what) {
  if (!p) throw std::runtime_error(std::string(what) + " failed: errno " + std::to_string(errno));
  return p;
}
inline void checked(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + " failed: " + std::to_string(result));
}

struct Options {
  std::uint64_t bytes = 1 << 20;
  std::uint32_t send_depth = 64;
  std::uint32_t receive_depth = 64;
  std::uint8_t timeout = 14;
  std::uint8_t retries = 7;
};

class Endpoint {
 public:
  explicit Endpoint(const Options& chosen) : options(chosen) {
    int count = 0;
    ibv_device** list = checked(ibv_get_device_list(&count), "ibv_get_device_list");
    context = count > 0 ? ibv_open_device(list[0]) : nullptr;
    ibv_free_device_list(list);
    checked(context, "ibv_open_device");
    pd = checked(ibv_alloc_pd(context), "ibv_alloc_pd");
    storage.resize(options.bytes + 64);
    memory =
        reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(storage.data()) + 63) & ~63ull);
    mr = checked(ibv_reg_mr(pd, memory, options.bytes, kAccess), "ibv_reg_mr");
    cq = checked(ibv_create_cq(context, static_cast<int>(options.send_depth + options.receive_depth), nullptr,
                               nullptr, 0),
                 "ibv_create_cq");
    make_qp();
  }
  ~Endpoint() {
    if (qp) ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
  }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void make_qp() {
    if (qp) checked(ibv_destroy_qp(qp), "ibv_destroy_qp");
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.qp_type = IBV_QPT_RC;
    a.cap = {options.send_depth, options.receive_depth, 4, 4, 128};
    qp = checked(ibv_create_qp(pd, &a), "ibv_create_qp");
    max_inline = a.cap.max_inline_data;
  }

  Address address() const {
    Address a;
    ibv_port_attr port{};
    checked(ibv_query_port(context, 1, &port), "ibv_query_port");
    a.lid = port.lid;
    a.global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    checked(ibv_query_gid(context, 1, a.global ? 3 : 0, &a.gid), "ibv_query_gid");
    a.qpn = qp->qp_num;
    a.psn = psn;
    a.rkey = mr->rkey;
    a.memory = reinterpret_cast<std::uint64_t>(memory);
    a.bytes = options.bytes;
    return a;
  }

  void connect(const Address& peer) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = kAccess;
    checked(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            "INIT");
    a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer.qpn;
    a.rq_psn = peer.psn;
    a.max_dest_rd_atomic = 16;
    a.min_rnr_timer = 1;
    a.ah_attr.dlid = peer.lid;
    a.ah_attr.port_num = 1;
    a.ah_attr.is_global = peer.global;
    a.ah_attr.grh.dgid = peer.gid;
    a.ah_attr.grh.sgid_index = peer.global ? 3 : 0;
    a.ah_attr.grh.hop_limit = 1;
    checked(ibv_modify_qp(qp, &a,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            "RTR");
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = options.timeout;
    a.retry_cnt = options.retries;
    a.rnr_retry = 7;
    a.sq_psn = psn;
    a.max_rd_atomic = 16;
    checked(ibv_modify_qp(qp, &a,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            "RTS");
  }

  void post(ibv_send_wr& wr) {
    ibv_send_wr* bad = nullptr;
    checked(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
  }
  void post_receive(std::uint64_t offset, std::uint32_t bytes) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory) + offset, bytes, mr->lkey};
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = bytes != 0 ? 1 : 0;
    ibv_recv_wr* bad = nullptr;
    checked(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
  }

  /// The next completion. Throws where none comes within the deadline.
  ibv_wc complete(std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    ibv_wc wc{};
    for (unsigned turn = 0;; ++turn) {
      const int n = ibv_poll_cq(cq, 1, &wc);
      if (n == 1) return wc;
      if (n < 0) throw std::runtime_error("ibv_poll_cq failed");
      if (turn % 1024 == 0 && std::chrono::steady_clock::now() > end)
        throw std::runtime_error("no completion");
    }
  }

  static constexpr int kAccess =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

  Options options;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_mr* mr = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  std::vector<unsigned char> storage;
  unsigned char* memory = nullptr;
  std::uint32_t psn = 0xfffff0;  // wraps soon
  std::uint32_t max_inline = 0;
};

/// Fills memory from a seed, so that two ends agree without sending it.
inline void fill(unsigned char* memory, std::uint64_t bytes, std::uint64_t seed) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
  for (std::uint64_t i = 0; i < bytes; ++i) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    memory[i] = static_cast<unsigned char>(x);
  }
}

/// FNV-1a over 8 B words and the rest: order-sensitive, quick enough for 64 MiB.
inline std::uint64_t checksum(const unsigned char* memory, std::uint64_t bytes) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  std::uint64_t word;
  std::uint64_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::memcpy(&word, memory + i, 8);
    h = (h ^ word) * 0x100000001b3ull;
  }
  for (; i < bytes; ++i) h = (h ^ memory[i]) * 0x100000001b3ull;
  return h;
}

}  // namespace belfry::softnic::test
