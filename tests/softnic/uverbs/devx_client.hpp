#pragma once
/// \file
/// DEVX calls of a raw client.

#include <rdma/mlx5_user_ioctl_verbs.h>

#include "belfry/wire/prm.hpp"
#include "client.hpp"

namespace belfry::softnic::test {

namespace prm = wire::prm;

using Bytes = std::vector<std::uint8_t>;

template <class Command>
Bytes mailbox_of(prm::Opcode opcode) {
  Bytes in(Command::kBytes);
  prm::CommandIn::opcode::set(in.data(), static_cast<std::uint64_t>(opcode));
  return in;
}

struct DevxReply {
  int error = 0;
  std::uint32_t handle = 0;
  Bytes out;

  prm::Status status() const { return static_cast<prm::Status>(prm::CommandOut::status::get(out.data())); }
  std::uint32_t object_id() const { return prm::CommandOut::object_id::get(out.data()); }
};

class DevxClient : public Opened {
 public:
  using Opened::Opened;

  DevxReply general(const Bytes& in, std::size_t out_bytes = 16) {
    DevxReply reply;
    reply.out.assign(out_bytes, 0);
    Attributes a;
    a.bytes(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in).bytes(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, reply.out);
    reply.error = ioctl(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, a);
    return reply;
  }
  DevxReply create(const Bytes& in, std::size_t out_bytes = 16) {
    DevxReply reply;
    reply.out.assign(out_bytes, 0);
    Attributes a;
    a.add(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0, 0)
        .bytes(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in)
        .bytes(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, reply.out);
    reply.error = ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, a);
    reply.handle = static_cast<std::uint32_t>(a.list[0].data);
    return reply;
  }
  DevxReply modify(std::uint32_t handle, const Bytes& in) {
    DevxReply reply;
    reply.out.assign(16, 0);
    Attributes a;
    a.add(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, handle, 0)
        .bytes(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, in)
        .bytes(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, reply.out);
    reply.error = ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, a);
    return reply;
  }
  DevxReply query(std::uint32_t handle, const Bytes& in, std::size_t out_bytes) {
    DevxReply reply;
    reply.out.assign(out_bytes, 0);
    Attributes a;
    a.add(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, handle, 0)
        .bytes(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, in)
        .bytes(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, reply.out);
    reply.error = ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, a);
    return reply;
  }
  int destroy_object(std::uint32_t handle) {
    Attributes a;
    a.add(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle, 0);
    return ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, a);
  }

  struct Umem {
    int error = 0;
    std::uint32_t handle = 0;
    std::uint32_t id = 0;
  };
  Umem reg_umem(std::uint64_t address, std::uint64_t bytes, std::uint32_t access) {
    Umem umem;
    Attributes a;
    a.add(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0, 0)
        .add(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, address, 8)
        .add(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, bytes, 8)
        .add(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, access, 4)
        .out(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem.id);
    umem.error = ioctl(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, a);
    umem.handle = static_cast<std::uint32_t>(a.list[0].data);
    return umem;
  }
  int dereg_umem(std::uint32_t handle) {
    Attributes a;
    a.add(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, handle, 0);
    return ioctl(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, a);
  }

  /// Number of a verbs PD, as DEVX names it.
  std::uint32_t pd_number(std::uint32_t handle) {
    std::uint32_t number = 0;
    Attributes a;
    a.add(MLX5_IB_ATTR_QUERY_PD_HANDLE, handle, 0).out(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, number);
    EXPECT_EQ(ioctl(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, a), 0);
    return number;
  }
};

/// Queues in one umem: CQ ring, its record, send queue, its record.
struct DevxQueues {
  static constexpr std::uint64_t kCqBytes = 4096;  // 64 entries
  static constexpr std::uint64_t kSqOffset = kCqBytes;
  static constexpr std::uint64_t kRecords = kSqOffset + 4096;  // 64 blocks before them

  explicit DevxQueues(DevxClient& on) : client(on), pages(3) {
    std::memset(pages.data(), 0xf0, kCqBytes);  // no entry reads as valid
    umem = client.reg_umem(pages.address(), pages.size(), kAccessLocalWrite);
    EXPECT_EQ(umem.error, 0);
    pd_handle = client.alloc_pd();
    pd = client.pd_number(pd_handle);
  }

  Bytes cq_mailbox() {
    Bytes in = mailbox_of<prm::CreateCqIn>(prm::Opcode::create_cq);
    std::uint8_t* c = prm::CreateCqIn::cq_context::at(in.data());
    prm::CqContext::log_cq_size::set(c, 6);
    prm::CqContext::uar_page::set(c, client.uar());
    prm::CqContext::dbr_umem_id::set(c, umem.id);
    prm::CqContext::dbr_addr::set(c, kRecords);
    prm::CreateCqIn::cq_umem_id::set(in.data(), umem.id);
    return in;
  }
  Bytes qp_mailbox(std::uint32_t cqn) {
    Bytes in = mailbox_of<prm::CreateQpIn>(prm::Opcode::create_qp);
    std::uint8_t* c = prm::CreateQpIn::qpc::at(in.data());
    prm::QpContext::pd::set(c, pd);
    prm::QpContext::uar_page::set(c, client.uar());
    prm::QpContext::cqn_snd::set(c, cqn);
    prm::QpContext::cqn_rcv::set(c, cqn);
    prm::QpContext::log_sq_size::set(c, 6);
    prm::QpContext::rq_type::set(c, static_cast<std::uint64_t>(prm::ReceiveQueueType::none));
    prm::QpContext::user_index::set(c, 0x31337);
    prm::QpContext::dbr_umem_id::set(c, umem.id);
    prm::QpContext::dbr_addr::set(c, kRecords + 64);
    prm::CreateQpIn::wq_umem_id::set(in.data(), umem.id);
    prm::CreateQpIn::wq_umem_offset::set(in.data(), kSqOffset);
    return in;
  }

  /// A transition's mailbox for a QP that is connected to itself.
  Bytes transition(prm::Opcode opcode, std::uint32_t qpn) {
    Bytes in = mailbox_of<prm::ModifyQpIn>(opcode);
    prm::ModifyQpIn::qpn::set(in.data(), qpn);
    std::uint8_t* c = prm::ModifyQpIn::qpc::at(in.data());
    std::uint8_t* path = prm::QpContext::primary_address_path::at(c);
    prm::AddressPath::vhca_port_num::set(path, 1);
    prm::AddressPath::rlid::set(path, client.nic->device(0).lid);
    prm::AddressPath::ack_timeout::set(path, 14);
    prm::QpContext::rwe::set(c, 1);
    prm::QpContext::rre::set(c, 1);
    prm::QpContext::rae::set(c, 1);
    prm::QpContext::mtu::set(c, 3);
    prm::QpContext::remote_qpn::set(c, qpn);
    prm::QpContext::log_sra_max::set(c, 3);
    prm::QpContext::log_rra_max::set(c, 4);
    prm::QpContext::retry_count::set(c, 5);
    prm::QpContext::rnr_retry::set(c, 6);
    prm::QpContext::min_rnr_nak::set(c, 12);
    prm::QpContext::next_send_psn::set(c, 0x111);
    prm::QpContext::next_rcv_psn::set(c, 0x111);
    return in;
  }
  void connect(std::uint32_t handle, std::uint32_t qpn) {
    for (const auto opcode : {prm::Opcode::rst2init_qp, prm::Opcode::init2rtr_qp, prm::Opcode::rtr2rts_qp}) {
      EXPECT_EQ(client.modify(handle, transition(opcode, qpn)).error, 0) << static_cast<int>(opcode);
    }
  }

  DevxClient& client;
  Pages pages;
  DevxClient::Umem umem;
  std::uint32_t pd_handle = 0;
  std::uint32_t pd = 0;
};

}  // namespace belfry::softnic::test
