#pragma once
/// \file
/// A client of UverbsFile that speaks raw bytes, as a library does after it has built a command. No
/// libibverbs, no preload; the NIC is polled by the test.

#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "softnic/fabric/memory_fabric.hpp"
#include "softnic/firmware/nic.hpp"
#include "softnic/uverbs/file.hpp"

namespace belfry::softnic::test {

/// An address that nothing is mapped at.
inline constexpr std::uint64_t kNowhere = 0x10;

/// Pages of their own, zeroed, with a hole that is not mapped behind them.
class Pages {
 public:
  explicit Pages(std::size_t count, int protection = PROT_READ | PROT_WRITE) : bytes_(count * 4096) {
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes_ + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_, bytes_, protection);
  }
  ~Pages() { ::munmap(base_, bytes_ + 4096); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() const { return base_; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(base_); }
  std::uint64_t end() const { return address() + bytes_; }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* base_;
};

struct Nothing {};

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
template <>
inline std::vector<std::byte> bytes_of(const Nothing&) {
  return {};
}

/// What came back of a command.
struct Reply {
  int error = 0;  ///< positive errno
  std::vector<std::byte> core;
  std::vector<std::byte> driver;

  template <class T>
  T core_as() const {
    return as<T>(core);
  }
  template <class T>
  T driver_as() const {
    return as<T>(driver);
  }

 private:
  template <class T>
  static T as(const std::vector<std::byte>& bytes) {
    T value{};
    EXPECT_GE(bytes.size(), sizeof value);
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return value;
  }
};

/// Sizes of the responses that a command leaves room for.
struct Room {
  std::size_t core = 0;
  std::size_t driver = 0;
};

inline Config quiet_config(LinkLayer link = LinkLayer::infiniband) {
  Config config;
  config.link = link;
  config.seed = 1;
  return config;
}

class Client {
 public:
  explicit Client(const Config& config = quiet_config())
      : nic(std::make_shared<Nic>(config, MemoryHub::create()->open_port())),
        file(*UverbsFile::open(*nic, 0)) {}
  /// Another file on the same NIC.
  explicit Client(const Client& other) : nic(other.nic), file(*UverbsFile::open(*nic, 0)) {}
  ~Client() {
    for (const int descriptor : descriptors) ::close(descriptor);
    if (uar_page != nullptr) ::munmap(uar_page, 4096);
  }

  /// One write of exactly these bytes. \return 0 or a positive errno
  int write(const std::vector<std::byte>& command) {
    const ssize_t result = file->write(command.data(), command.size());
    if (result < 0) return static_cast<int>(-result);
    EXPECT_EQ(static_cast<std::size_t>(result), command.size());
    return 0;
  }

  /// A command of the first form. `request.response` is filled in where `room` leaves any.
  template <class Request, class Driver = Nothing>
  Reply plain(std::uint32_t number, Request request, Room room = {}, const Driver& driver = {}) {
    std::vector<std::byte> response(room.core + room.driver, std::byte{0xee});
    if constexpr (requires { request.response; }) {
      if (request.response == 0 && !response.empty())
        request.response = reinterpret_cast<std::uintptr_t>(response.data());
    }
    std::vector<std::byte> command = bytes_of(ib_uverbs_cmd_hdr{});
    for (const auto& part : {bytes_of(request), bytes_of(driver)})
      command.insert(command.end(), part.begin(), part.end());
    ib_uverbs_cmd_hdr header{};
    header.command = number;
    header.in_words = static_cast<std::uint16_t>(command.size() / 4);
    header.out_words = static_cast<std::uint16_t>(response.size() / 4);
    std::memcpy(command.data(), &header, sizeof header);
    return answer(write(command), response, room);
  }

  /// A command of the extended form.
  template <class Request, class Driver = Nothing>
  Reply extended(std::uint32_t number, const Request& request, Room room = {}, const Driver& driver = {}) {
    std::vector<std::byte> response(room.core + room.driver, std::byte{0xee});
    struct {
      ib_uverbs_cmd_hdr plain;
      ib_uverbs_ex_cmd_hdr extension;
    } header{};
    const auto core_part = bytes_of(request);
    const auto driver_part = bytes_of(driver);
    header.plain.command = IB_USER_VERBS_CMD_FLAG_EXTENDED | number;
    header.plain.in_words = static_cast<std::uint16_t>(core_part.size() / 8);
    header.plain.out_words = static_cast<std::uint16_t>(room.core / 8);
    header.extension.provider_in_words = static_cast<std::uint16_t>(driver_part.size() / 8);
    header.extension.provider_out_words = static_cast<std::uint16_t>(room.driver / 8);
    header.extension.response = response.empty() ? 0 : reinterpret_cast<std::uintptr_t>(response.data());
    std::vector<std::byte> command = bytes_of(header);
    for (const auto& part : {core_part, driver_part}) command.insert(command.end(), part.begin(), part.end());
    return answer(write(command), response, room);
  }

  /// Opens the context as libmlx5 does: DEVX, dynamic UARs.
  Reply open_context(std::uint64_t lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
                     std::uint32_t flags = MLX5_IB_ALLOC_UCTX_DEVX) {
    mlx5_ib_alloc_ucontext_req_v2 driver{};
    driver.total_num_bfregs = 16;
    driver.num_low_latency_bfregs = 4;
    driver.flags = flags;
    driver.max_cqe_version = 1;
    driver.lib_caps = lib_caps;
    const Reply reply =
        plain(IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context{},
              {sizeof(ib_uverbs_get_context_resp), sizeof(mlx5_ib_alloc_ucontext_resp)}, driver);
    if (reply.error == 0) {
      async_descriptor = static_cast<int>(reply.core_as<ib_uverbs_get_context_resp>().async_fd);
      descriptors.push_back(async_descriptor);
    }
    return reply;
  }

  std::uint32_t alloc_pd();
  Reply reg_mr(std::uint32_t pd, std::uint64_t start, std::uint64_t length, std::uint32_t access);
  int create_channel();
  Reply create_cq(std::uint32_t entries, int channel = -1, std::uint64_t user_handle = 0);
  Reply create_qp(std::uint32_t pd, std::uint32_t cq, std::uint64_t user_handle = 0);
  template <class Response = Nothing>
  int destroy(std::uint32_t number, std::uint32_t handle, Response* response = nullptr);

  /// A UAR object, mapped. \return its page id
  std::uint32_t uar();
  std::byte* uar_page = nullptr;
  std::uint32_t uar_handle = 0;
  std::uint32_t uar_number = 0;

  /// Attributes of an ioctl. Numbers up to 8 B are held in the attribute.
  struct Attributes {
    std::vector<ib_uverbs_attr> list;
    Attributes& add(std::uint16_t id, std::uint64_t data, std::uint16_t length,
                    std::uint16_t flags = UVERBS_ATTR_F_MANDATORY) {
      ib_uverbs_attr attribute{};
      attribute.attr_id = id;
      attribute.len = length;
      attribute.flags = flags;
      attribute.data = data;
      list.push_back(attribute);
      return *this;
    }
    template <class T>
    Attributes& out(std::uint16_t id, T& to) {
      return add(id, reinterpret_cast<std::uintptr_t>(&to), sizeof to);
    }
    Attributes& bytes(std::uint16_t id, const std::vector<std::uint8_t>& from) {
      return add(id, reinterpret_cast<std::uintptr_t>(from.data()), static_cast<std::uint16_t>(from.size()));
    }
  };

  /// \return 0 or a positive errno; handles that come back are in `attributes`
  int ioctl(std::uint16_t object, std::uint16_t method, Attributes& attributes);

  std::shared_ptr<Nic> nic;
  std::deque<std::unique_ptr<Pages>> memory;  ///< buffers of queues, which outlive the file
  std::shared_ptr<UverbsFile> file;
  std::vector<int> descriptors;
  int async_descriptor = -1;

 private:
  static Reply answer(int error, const std::vector<std::byte>& response, Room room) {
    Reply reply;
    reply.error = error;
    reply.core.assign(response.begin(), response.begin() + static_cast<std::ptrdiff_t>(room.core));
    reply.driver.assign(response.begin() + static_cast<std::ptrdiff_t>(room.core), response.end());
    return reply;
  }
  Pages& new_pages(std::size_t count) { return *memory.emplace_back(std::make_unique<Pages>(count)); }
};

inline std::uint32_t Client::alloc_pd() {
  const Reply reply = plain(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{},
                            {sizeof(ib_uverbs_alloc_pd_resp), sizeof(mlx5_ib_alloc_pd_resp)});
  EXPECT_EQ(reply.error, 0);
  return reply.core_as<ib_uverbs_alloc_pd_resp>().pd_handle;
}

inline Reply Client::reg_mr(std::uint32_t pd, std::uint64_t start, std::uint64_t length,
                            std::uint32_t access) {
  ib_uverbs_reg_mr request{};
  request.start = start;
  request.hca_va = start;
  request.length = length;
  request.pd_handle = pd;
  request.access_flags = access;
  return plain(IB_USER_VERBS_CMD_REG_MR, request, {sizeof(ib_uverbs_reg_mr_resp), 0});
}

inline int Client::create_channel() {
  const Reply reply = plain(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{},
                            {sizeof(ib_uverbs_create_comp_channel_resp), 0});
  EXPECT_EQ(reply.error, 0);
  const int descriptor = static_cast<int>(reply.core_as<ib_uverbs_create_comp_channel_resp>().fd);
  descriptors.push_back(descriptor);
  return descriptor;
}

inline Reply Client::create_cq(std::uint32_t entries, int channel, std::uint64_t user_handle) {
  Pages& pages = new_pages(2 + entries * 64 / 4096);
  mlx5_ib_create_cq driver{};
  driver.db_addr = pages.address();
  driver.buf_addr = pages.address() + 4096;
  driver.cqe_size = 64;
  driver.flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
  driver.uar_page_index = static_cast<std::uint16_t>(uar());
  ib_uverbs_create_cq request{};
  request.user_handle = user_handle;
  request.cqe = entries;
  request.comp_channel = channel;
  return plain(IB_USER_VERBS_CMD_CREATE_CQ, request,
               {sizeof(ib_uverbs_create_cq_resp), sizeof(mlx5_ib_create_cq_resp)}, driver);
}

inline Reply Client::create_qp(std::uint32_t pd, std::uint32_t cq, std::uint64_t user_handle) {
  Pages& pages = new_pages(4);
  mlx5_ib_create_qp driver{};
  driver.db_addr = pages.address();
  driver.buf_addr = pages.address() + 4096;
  driver.sq_wqe_count = 64;
  driver.rq_wqe_count = 64;
  driver.rq_wqe_shift = 4;
  driver.flags = MLX5_QP_FLAG_UAR_PAGE_INDEX;
  driver.bfreg_index = uar();
  driver.uidx = 7;
  ib_uverbs_create_qp request{};
  request.user_handle = user_handle;
  request.pd_handle = pd;
  request.send_cq_handle = cq;
  request.recv_cq_handle = cq;
  request.max_send_wr = 64;
  request.max_recv_wr = 64;
  request.max_send_sge = 1;
  request.max_recv_sge = 1;
  request.qp_type = IB_UVERBS_QPT_RC;
  return plain(IB_USER_VERBS_CMD_CREATE_QP, request,
               {sizeof(ib_uverbs_create_qp_resp), sizeof(mlx5_ib_create_qp_resp)}, driver);
}

template <class Response>
int Client::destroy(std::uint32_t number, std::uint32_t handle, Response* response) {
  struct {
    std::uint64_t response;
    std::uint32_t handle;
    std::uint32_t reserved;
  } with_response{0, handle, 0};
  struct {
    std::uint32_t handle;
  } alone{handle};
  if constexpr (std::is_same_v<Response, Nothing>) return plain(number, alone).error;
  const Reply reply = plain(number, with_response, {sizeof(Response), 0});
  if (response != nullptr && reply.error == 0) *response = reply.core_as<Response>();
  return reply.error;
}

inline int Client::ioctl(std::uint16_t object, std::uint16_t method, Attributes& attributes) {
  std::vector<std::byte> call(sizeof(ib_uverbs_ioctl_hdr) + attributes.list.size() * sizeof(ib_uverbs_attr));
  ib_uverbs_ioctl_hdr header{};
  header.length = static_cast<std::uint16_t>(call.size());
  header.object_id = object;
  header.method_id = method;
  header.num_attrs = static_cast<std::uint16_t>(attributes.list.size());
  header.driver_id = RDMA_DRIVER_MLX5;
  std::memcpy(call.data(), &header, sizeof header);
  std::byte* at = call.data() + sizeof header;
  if (!attributes.list.empty()) std::memcpy(at, attributes.list.data(), call.size() - sizeof header);
  const int result = file->ioctl(RDMA_VERBS_IOCTL, call.data());
  if (!attributes.list.empty()) std::memcpy(attributes.list.data(), at, call.size() - sizeof header);
  return -result;
}

inline std::uint32_t Client::uar() {
  if (uar_page != nullptr) return uar_number;

  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t page = 0;
  Attributes attributes;
  attributes.add(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0, 0)
      .add(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 0, 8)
      .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset)
      .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, length)
      .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, page);
  EXPECT_EQ(ioctl(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, attributes), 0);
  uar_handle = static_cast<std::uint32_t>(attributes.list[0].data);
  void* mapped = ::mmap(nullptr, length, PROT_WRITE, MAP_SHARED, file->fd(), static_cast<off_t>(offset));
  EXPECT_NE(mapped, MAP_FAILED);
  uar_page = static_cast<std::byte*>(mapped);
  uar_number = page;
  return page;
}

/// A client whose context is open.
class Opened : public Client {
 public:
  explicit Opened(const Config& config = quiet_config()) : Client(config) {
    EXPECT_EQ(open_context().error, 0);
  }
  explicit Opened(const Client& other) : Client(other) { EXPECT_EQ(open_context().error, 0); }
  Opened(const Opened& other) : Opened(static_cast<const Client&>(other)) {}
};

}  // namespace belfry::softnic::test
