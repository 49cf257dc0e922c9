// The write() commands of VerbsClient, in the shapes that libibverbs and libmlx5 give them.
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <array>

#include "fuzz/verbs_client.hpp"
#include "fuzz/verbs_command.hpp"

namespace belfry::fuzz {
namespace {

/// `right` for a choice of 0, else a size that is wrong in some way.
std::uint32_t size_choice(Reader& r, std::uint32_t right) {
  const std::uint8_t choice = r.byte();
  if (choice == 0) return right;
  constexpr std::array<std::uint32_t, 10> kOdd = {0,       1,          3,          65535,      65536,
                                                  1 << 22, 0x40000000, 0x7fffffff, 0x80000000, 0xffffffff};
  return choice <= kOdd.size() ? kOdd[choice - 1u] : choice;
}

}  // namespace

VerbsClient::VerbsClient(softnic::Nic& nic, UserMemory& memory, unsigned device) : memory_(memory) {
  auto file = softnic::UverbsFile::open(nic, device);
  if (file) file_ = *file;
  output_ = memory_.slot();
  call_ = memory_.slot();
}

std::uint32_t VerbsClient::handle(Reader& r, Kind kind) const {
  const std::uint8_t choice = r.byte();
  const auto& objects = of(kind);
  if (choice >= 0xf0) return 0xffffffffu << (choice & 0xf);
  if (choice >= 0xc0) return choice & 0x3fu;
  if (choice >= 0x80) {
    const auto& others = objects_[choice % static_cast<unsigned>(Kind::count)];
    return others.empty() ? choice : others.back().handle;
  }
  if (objects.empty()) return choice;
  return objects[objects.size() - 1 - choice % objects.size()].handle;
}

std::uint32_t VerbsClient::number(Reader& r, Kind kind) const {
  const std::uint8_t choice = r.byte();
  const auto& objects = of(kind);
  if (choice >= 0xc0 || objects.empty()) return choice * 0x010101u;
  return objects[objects.size() - 1 - choice % objects.size()].number;
}

void VerbsClient::note(Kind kind, std::uint32_t handle, std::uint32_t number) {
  of(kind).push_back({handle, number});
}

void VerbsClient::forget(Kind kind, std::uint32_t handle) {
  std::erase_if(of(kind), [handle](const Object& o) { return o.handle == handle; });
}

// Lengths, the response's address and one byte of the command can be wrong.
ssize_t VerbsClient::send(Command& command, Reader& r, void* response, std::size_t bytes) {
  std::uint64_t answer = 0;
  if (bytes != 0) {
    answer = address(r, output_);
    const std::uint8_t shorter = r.byte();
    bytes -= std::min<std::size_t>(bytes, shorter);
  }
  std::memset(output_, 0, 512);
  command.finish(bytes, answer);
  auto& raw = command.bytes();
  if (!command.extended() && bytes != 0) std::memcpy(raw.data() + sizeof(ib_uverbs_cmd_hdr), &answer, 8);
  const std::uint8_t patch = r.byte();
  if (patch != 0) raw[patch % raw.size()] = r.byte();
  const std::uint8_t cut = r.byte();
  const std::size_t length = raw.size() - std::min<std::size_t>(raw.size(), cut);
  const ssize_t result = file_->write(raw.data(), length);
  if (response != nullptr) std::memcpy(response, output_, std::min<std::size_t>(bytes, 512));
  return result;
}

void VerbsClient::get_context(Reader& r) {
  Command c(IB_USER_VERBS_CMD_GET_CONTEXT);
  mlx5_ib_alloc_ucontext_req_v2 driver{};
  driver.total_num_bfregs = r.byte();
  driver.num_low_latency_bfregs = r.byte();
  driver.flags = MLX5_IB_ALLOC_UCTX_DEVX * (r.byte() == 0);
  driver.max_cqe_version = static_cast<std::uint8_t>(1 - r.pick(2));
  driver.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR * (r.byte() == 0);
  c.add(std::uint64_t{0}).add(driver);
  send(c, r, nullptr, sizeof(ib_uverbs_get_context_resp) + sizeof(mlx5_ib_alloc_ucontext_resp));
}

void VerbsClient::query_device(Reader& r) {
  const bool extended = r.pick(2) != 0;
  Command c(extended ? static_cast<std::uint32_t>(IB_USER_VERBS_EX_CMD_QUERY_DEVICE)
                     : static_cast<std::uint32_t>(IB_USER_VERBS_CMD_QUERY_DEVICE),
            extended);
  if (extended) {
    c.add(ib_uverbs_ex_query_device{}).driver(0);
    send(c, r, nullptr, sizeof(ib_uverbs_ex_query_device_resp));
  } else {
    c.add(std::uint64_t{0});
    send(c, r, nullptr, sizeof(ib_uverbs_query_device_resp));
  }
}

void VerbsClient::query_port(Reader& r) {
  Command c(IB_USER_VERBS_CMD_QUERY_PORT);
  ib_uverbs_query_port core{};
  core.port_num = static_cast<std::uint8_t>(1 + r.byte());
  c.add(core, offsetof(ib_uverbs_query_port, driver_data));
  send(c, r, nullptr, sizeof(ib_uverbs_query_port_resp));
}

void VerbsClient::alloc_pd(Reader& r) {
  Command c(IB_USER_VERBS_CMD_ALLOC_PD);
  c.add(std::uint64_t{0});
  std::array<std::uint32_t, 2> answer{};
  if (send(c, r, answer.data(), sizeof answer) > 0) note(Kind::pd, answer[0], answer[1]);
}

void VerbsClient::destroy_simple(Reader& r, unsigned command, Kind kind) {
  Command c(command);
  const std::uint32_t h = handle(r, kind);
  c.add(h);
  if (send(c, r, nullptr, 0) > 0) forget(kind, h);
}

void VerbsClient::dealloc_pd(Reader& r) { destroy_simple(r, IB_USER_VERBS_CMD_DEALLOC_PD, Kind::pd); }
void VerbsClient::dereg_mr(Reader& r) { destroy_simple(r, IB_USER_VERBS_CMD_DEREG_MR, Kind::mr); }

void VerbsClient::reg_mr(Reader& r) {
  Command c(IB_USER_VERBS_CMD_REG_MR);
  ib_uverbs_reg_mr core{};
  core.start = address(r, slot());
  core.length = size_choice(r, UserMemory::kSlotBytes);
  core.hca_va = core.start + r.byte();
  core.pd_handle = handle(r, Kind::pd);
  core.access_flags = 0xfu ^ r.get<std::uint16_t>();
  c.add(core, offsetof(ib_uverbs_reg_mr, driver_data));
  std::array<std::uint32_t, 3> answer{};
  if (send(c, r, answer.data(), sizeof answer) > 0) note(Kind::mr, answer[0], answer[1]);
}

void VerbsClient::rereg_mr(Reader& r) {
  Command c(IB_USER_VERBS_CMD_REREG_MR);
  ib_uverbs_rereg_mr core{};
  core.mr_handle = handle(r, Kind::mr);
  core.flags = r.byte();
  core.start = core.hca_va = address(r, slot());
  core.length = size_choice(r, UserMemory::kSlotBytes);
  core.pd_handle = handle(r, Kind::pd);
  core.access_flags = 0xfu ^ r.byte();
  c.add(core, offsetof(ib_uverbs_rereg_mr, driver_data));
  send(c, r, nullptr, 8);
}

void VerbsClient::create_channel(Reader& r) {
  Command c(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL);
  c.add(std::uint64_t{0});
  std::uint32_t fd = 0;
  if (send(c, r, &fd, sizeof fd) > 0) note(Kind::channel, fd, fd);
}

void VerbsClient::create_cq(Reader& r) {
  const bool extended = (r.byte() & 1) != 0;
  mlx5_ib_create_cq driver{};
  driver.buf_addr = address(r, slot());
  driver.db_addr = address(r, slot());
  driver.cqe_size = 64u << r.pick(4);
  driver.flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX ^ r.byte();
  driver.uar_page_index = static_cast<std::uint16_t>(number(r, Kind::uar));
  const std::uint32_t entries = size_choice(r, 63);
  const std::uint8_t with_channel = r.byte();
  const std::int32_t channel = with_channel == 0 ? -1 : static_cast<std::int32_t>(handle(r, Kind::channel));
  std::array<std::uint32_t, 8> answer{};
  ssize_t result = 0;
  if (extended) {
    Command c(IB_USER_VERBS_EX_CMD_CREATE_CQ, true);
    ib_uverbs_ex_create_cq core{};
    core.cqe = entries;
    core.comp_channel = channel;
    core.comp_mask = r.byte();
    core.flags = r.byte();
    c.add(core).driver(sizeof(mlx5_ib_create_cq_resp)).add(driver);
    result = send(c, r, answer.data(), sizeof(ib_uverbs_ex_create_cq_resp) + sizeof(mlx5_ib_create_cq_resp));
  } else {
    Command c(IB_USER_VERBS_CMD_CREATE_CQ);
    ib_uverbs_create_cq core{};
    core.cqe = entries;
    core.comp_channel = channel;
    core.comp_vector = r.byte();
    c.add(core, offsetof(ib_uverbs_create_cq, driver_data)).add(driver);
    result = send(c, r, answer.data(), sizeof(ib_uverbs_create_cq_resp) + sizeof(mlx5_ib_create_cq_resp));
  }
  if (result > 0) note(Kind::cq, answer[0], answer[2]);
}

void VerbsClient::resize_cq(Reader& r) {
  Command c(IB_USER_VERBS_CMD_RESIZE_CQ);
  ib_uverbs_resize_cq core{};
  core.cq_handle = handle(r, Kind::cq);
  core.cqe = size_choice(r, 127);
  mlx5_ib_resize_cq driver{};
  driver.buf_addr = address(r, slot());
  driver.cqe_size = static_cast<std::uint16_t>(64u << r.pick(4));
  c.add(core, offsetof(ib_uverbs_resize_cq, driver_data)).add(driver);
  send(c, r, nullptr, 8);
}

void VerbsClient::destroy_cq(Reader& r) {
  Command c(IB_USER_VERBS_CMD_DESTROY_CQ);
  ib_uverbs_destroy_cq core{};
  core.cq_handle = handle(r, Kind::cq);
  c.add(core);
  if (send(c, r, nullptr, sizeof(ib_uverbs_destroy_cq_resp)) > 0) forget(Kind::cq, core.cq_handle);
}

void VerbsClient::create_qp(Reader& r) {
  const bool extended = (r.byte() & 1) != 0;
  const std::uint32_t pd = handle(r, Kind::pd);
  const std::uint32_t send_cq = handle(r, Kind::cq);
  const std::uint32_t receive_cq = handle(r, Kind::cq);
  const auto type = static_cast<std::uint8_t>(IBV_QPT_RC + r.byte());
  mlx5_ib_create_qp driver{};
  driver.buf_addr = address(r, slot());
  driver.db_addr = address(r, slot());
  driver.sq_wqe_count = size_choice(r, 64);
  driver.rq_wqe_count = size_choice(r, 64);
  driver.rq_wqe_shift = 4u + r.byte();
  driver.flags = 0x400u ^ r.byte();  // the register index is a UAR page id
  driver.uidx = r.byte();
  driver.bfreg_index = number(r, Kind::uar);
  std::array<std::uint32_t, 24> answer{};
  ssize_t result = 0;
  if (extended) {
    Command c(IB_USER_VERBS_EX_CMD_CREATE_QP, true);
    ib_uverbs_ex_create_qp core{};
    core.pd_handle = pd;
    core.send_cq_handle = send_cq;
    core.recv_cq_handle = receive_cq;
    core.max_send_wr = core.max_recv_wr = 16;
    core.max_send_sge = core.max_recv_sge = 1;
    core.qp_type = type;
    c.add(core).driver(sizeof(mlx5_ib_create_qp_resp)).add(driver);
    result = send(c, r, answer.data(), sizeof(ib_uverbs_ex_create_qp_resp) + sizeof(mlx5_ib_create_qp_resp));
  } else {
    Command c(IB_USER_VERBS_CMD_CREATE_QP);
    ib_uverbs_create_qp core{};
    core.pd_handle = pd;
    core.send_cq_handle = send_cq;
    core.recv_cq_handle = receive_cq;
    core.max_send_wr = core.max_recv_wr = 16;
    core.max_send_sge = core.max_recv_sge = 1;
    core.qp_type = type;
    c.add(core, offsetof(ib_uverbs_create_qp, driver_data)).add(driver);
    result = send(c, r, answer.data(), sizeof(ib_uverbs_create_qp_resp) + sizeof(mlx5_ib_create_qp_resp));
  }
  if (result > 0) note(Kind::qp, answer[0], answer[1]);
}

void VerbsClient::modify_qp(Reader& r) {
  Command c(IB_USER_VERBS_CMD_MODIFY_QP);
  ib_uverbs_modify_qp core{};
  core.qp_handle = handle(r, Kind::qp);
  constexpr std::array<std::uint32_t, 6> kMasks = {
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
          IBV_QP_MAX_QP_RD_ATOMIC,
      IBV_QP_STATE,
      IBV_QP_STATE | IBV_QP_CUR_STATE,
      IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
  };
  constexpr std::array<std::uint8_t, 8> kStates = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_RESET,
                                                   IBV_QPS_ERR,  IBV_QPS_SQD, IBV_QPS_SQE, 9};
  const unsigned step = r.pick(kStates.size());
  core.attr_mask = kMasks[step < kMasks.size() ? step : 3] ^ (r.byte() * 0x101u * (r.byte() == 1));
  core.qp_state = kStates[step];
  core.dest_qp_num = number(r, Kind::qp);
  core.dest.dlid = static_cast<std::uint16_t>(1 + r.byte());
  core.dest.is_global = r.byte() & 1;
  core.dest.port_num = core.port_num = static_cast<std::uint8_t>(1 + r.pick(3));
  core.path_mtu = static_cast<std::uint8_t>(3 + r.byte());
  core.qp_access_flags = 0xf;
  core.max_rd_atomic = core.max_dest_rd_atomic = static_cast<std::uint8_t>(1 + r.byte());
  core.min_rnr_timer = core.timeout = 12;
  core.retry_cnt = core.rnr_retry = 7;
  c.add(core);
  send(c, r, nullptr, 0);
}

void VerbsClient::query_qp(Reader& r) {
  Command c(IB_USER_VERBS_CMD_QUERY_QP);
  ib_uverbs_query_qp core{};
  core.qp_handle = handle(r, Kind::qp);
  core.attr_mask = r.byte();
  c.add(core, offsetof(ib_uverbs_query_qp, driver_data));
  send(c, r, nullptr, sizeof(ib_uverbs_query_qp_resp));
}

void VerbsClient::destroy_qp(Reader& r) {
  Command c(IB_USER_VERBS_CMD_DESTROY_QP);
  ib_uverbs_destroy_qp core{};
  core.qp_handle = handle(r, Kind::qp);
  c.add(core);
  if (send(c, r, nullptr, sizeof(ib_uverbs_destroy_qp_resp)) > 0) forget(Kind::qp, core.qp_handle);
}

void VerbsClient::create_ah(Reader& r) {
  Command c(IB_USER_VERBS_CMD_CREATE_AH);
  ib_uverbs_create_ah core{};
  core.pd_handle = handle(r, Kind::pd);
  core.attr.dlid = static_cast<std::uint16_t>(1 + r.byte());
  core.attr.port_num = static_cast<std::uint8_t>(1 + r.byte());
  core.attr.is_global = r.byte() & 1;
  core.attr.grh.sgid_index = r.byte();
  c.add(core, offsetof(ib_uverbs_create_ah, driver_data));
  send(c, r, nullptr, 8 + sizeof(mlx5_ib_create_ah_resp));
}

// Any command number, any lengths, any bytes.
void VerbsClient::raw_write(Reader& r) {
  std::array<std::uint8_t, 160> bytes{};
  ib_uverbs_cmd_hdr head{};
  head.command = r.byte() % 64;
  const std::uint8_t flags = r.byte();
  if ((flags & 1) != 0) head.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
  if ((flags & 2) != 0) head.command |= 0x40000000u;
  head.in_words = static_cast<std::uint16_t>(r.byte() * ((flags & 4) != 0 ? 257 : 1));
  head.out_words = static_cast<std::uint16_t>(r.byte() * ((flags & 8) != 0 ? 257 : 1));
  std::memcpy(bytes.data(), &head, sizeof head);
  const auto filler = r.byte();
  std::fill(bytes.begin() + sizeof head, bytes.end(), filler);
  const std::uint64_t answer = address(r, output_);
  std::memcpy(bytes.data() + sizeof head, &answer, sizeof answer);
  const std::size_t length = (flags & 16) != 0 ? r.byte() % (bytes.size() + 1)
                                               : std::min<std::size_t>(head.in_words * 4u, bytes.size());
  file_->write(bytes.data(), length);
}

}  // namespace belfry::fuzz
