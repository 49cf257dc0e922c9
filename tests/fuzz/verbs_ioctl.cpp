// The ioctl methods of VerbsClient.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "fuzz/verbs_client.hpp"
#include "fuzz/verbs_command.hpp"

namespace belfry::fuzz {
namespace {

// Where the answers of one call go, behind its output mailbox.
constexpr std::size_t kAnswers = 8192;

ib_uverbs_attr attribute(unsigned id, std::uint64_t data, std::size_t length = 0) {
  ib_uverbs_attr a{};
  a.attr_id = static_cast<std::uint16_t>(id);
  a.len = static_cast<std::uint16_t>(length);
  a.flags = UVERBS_ATTR_F_MANDATORY;
  a.data = data;
  return a;
}

template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::uint64_t pointer(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

// The handle that a call has put into the attribute `id`.
std::uint32_t found_handle(const std::vector<ib_uverbs_attr>& attributes, unsigned id) {
  for (const ib_uverbs_attr& a : attributes)
    if (a.attr_id == id) return static_cast<std::uint32_t>(a.data);
  return 0;
}

}  // namespace

// Builds the header. A field of it, an attribute's field, or the order of two can be wrong.
int VerbsClient::ioctl(Reader& r, unsigned object, unsigned method, std::vector<ib_uverbs_attr>& attributes) {
  const std::uint8_t fault = r.byte();
  const std::uint8_t detail = r.byte();
  ib_uverbs_attr* victim = attributes.empty() ? nullptr : &attributes[detail % attributes.size()];
  if (victim != nullptr) {
    switch (fault) {
      case 1:
        victim->len = static_cast<std::uint16_t>(detail * 257u);
        break;
      case 2:
        victim->attr_id = static_cast<std::uint16_t>(victim->attr_id ^ (detail | 1u));
        break;
      case 3:
        victim->flags = detail;
        break;
      case 4:
        victim->data = address(r, output_);
        break;
      case 5:
        std::swap(attributes.front(), *victim);
        break;
      case 6:
        attributes.push_back(*victim);
        break;
      case 7:
        attributes.erase(attributes.begin() + detail % static_cast<std::ptrdiff_t>(attributes.size()));
        break;
      default:
        break;
    }
  }
  ib_uverbs_ioctl_hdr head{};
  head.object_id = static_cast<std::uint16_t>(object);
  head.method_id = static_cast<std::uint16_t>(method);
  head.num_attrs = static_cast<std::uint16_t>(attributes.size());
  head.driver_id = RDMA_DRIVER_MLX5;
  head.length = static_cast<std::uint16_t>(sizeof head + attributes.size() * sizeof(ib_uverbs_attr));
  if (fault == 8) head.num_attrs = static_cast<std::uint16_t>(detail * 257u);
  if (fault == 9) head.length = static_cast<std::uint16_t>(detail * 257u);
  if (fault == 10) head.driver_id = detail;
  if (fault == 11) head.object_id = static_cast<std::uint16_t>(head.object_id ^ detail);
  if (fault == 12) head.method_id = static_cast<std::uint16_t>(head.method_id ^ detail);

  const std::size_t attribute_bytes = attributes.size() * sizeof(ib_uverbs_attr);
  std::memcpy(call_, &head, sizeof head);
  if (attribute_bytes != 0) std::memcpy(call_ + sizeof head, attributes.data(), attribute_bytes);
  const std::uint64_t argument = fault == 13 ? address(r, call_) : reinterpret_cast<std::uint64_t>(call_);
  const unsigned long request = fault == 14 ? detail : RDMA_VERBS_IOCTL;
  const int result = file_->ioctl(request, reinterpret_cast<void*>(argument));
  if (attribute_bytes != 0) std::memcpy(attributes.data(), call_ + sizeof head, attribute_bytes);
  return result;
}

void VerbsClient::destroy_object(Reader& r, unsigned object, unsigned method, unsigned id, Kind kind) {
  const std::uint32_t h = handle(r, kind);
  std::vector<ib_uverbs_attr> attributes = {attribute(id, h)};
  if (ioctl(r, object, method, attributes) == 0) forget(kind, h);
}

void VerbsClient::alloc_uar(Reader& r) {
  std::uint8_t* answers = output_ + kAnswers;
  std::memset(answers, 0, 64);
  // The type is a constant by value: 0 is a BlueFlame register, 1 one without write combining.
  std::vector<ib_uverbs_attr> attributes = {
      attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0),
      attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, r.byte(), 8),
      attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, pointer(answers), 8),
      attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, pointer(answers + 8), 4),
      attribute(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, pointer(answers + 16), 4),
  };
  if (ioctl(r, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, attributes) != 0) return;
  note(Kind::uar, found_handle(attributes, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE),
       load<std::uint32_t>(answers + 16));
}

void VerbsClient::destroy_uar(Reader& r) {
  destroy_object(r, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE,
                 Kind::uar);
}

void VerbsClient::reg_umem(Reader& r) {
  std::uint8_t* answers = output_ + kAnswers;
  std::memset(answers, 0, 64);
  const std::uint64_t at = address(r, slot());
  const std::uint8_t odd = r.byte();
  const std::uint64_t length = odd == 0 ? UserMemory::kSlotBytes : std::uint64_t{odd} << (odd & 63);
  std::vector<ib_uverbs_attr> attributes = {
      attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0),
      attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, at, 8),
      attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, length, 8),
      attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 7u ^ r.byte(), 4),
      attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, pointer(answers), 4),
  };
  if (r.byte() == 1) attributes.push_back(attribute(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, r.byte()));
  if (ioctl(r, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, attributes) != 0) return;
  note(Kind::umem, found_handle(attributes, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE), load<std::uint32_t>(answers));
}

void VerbsClient::dereg_umem(Reader& r) {
  destroy_object(r, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG,
                 MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, Kind::umem);
}

void VerbsClient::query_gid(Reader& r) {
  std::vector<ib_uverbs_attr> attributes;
  const bool table = r.pick(2) != 0;
  if (table) {
    const std::uint8_t odd = r.byte();
    attributes = {
        attribute(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, odd == 0 ? 32 : odd, 8),
        attribute(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, r.byte(), 8),
        attribute(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, pointer(output_ + kAnswers),
                  32u * (1 + r.pick(64))),
        attribute(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, pointer(output_), 8),
    };
  } else {
    attributes = {
        attribute(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1u + r.byte(), 4),
        attribute(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, r.byte(), 4),
        attribute(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, r.byte(), 4),
        attribute(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, pointer(output_), 32),
    };
  }
  ioctl(r, UVERBS_OBJECT_DEVICE, table ? UVERBS_METHOD_QUERY_GID_TABLE : UVERBS_METHOD_QUERY_GID_ENTRY,
        attributes);
}

// The small questions: each answers with a number or two.
void VerbsClient::query_numbers(Reader& r) {
  const std::uint64_t answer = pointer(output_);
  std::vector<ib_uverbs_attr> attributes;
  switch (r.pick(5)) {
    case 0:
      attributes = {attribute(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, r.byte(), 4),
                    attribute(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, answer, 4)};
      ioctl(r, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, attributes);
      return;
    case 1:
      attributes = {attribute(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, r.byte(), 4),
                    attribute(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, answer, 4)};
      ioctl(r, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, attributes);
      return;
    case 2:
      attributes = {attribute(MLX5_IB_ATTR_QUERY_PD_HANDLE, handle(r, Kind::pd)),
                    attribute(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, answer, 4)};
      ioctl(r, UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, attributes);
      return;
    case 3:
      attributes = {attribute(UVERBS_ATTR_QUERY_MR_HANDLE, handle(r, Kind::mr)),
                    attribute(UVERBS_ATTR_QUERY_MR_RESP_LKEY, answer, 4),
                    attribute(UVERBS_ATTR_QUERY_MR_RESP_RKEY, answer + 8, 4),
                    attribute(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, answer + 16, 8),
                    attribute(UVERBS_ATTR_QUERY_MR_RESP_IOVA, answer + 24, 8)};
      ioctl(r, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, attributes);
      return;
    default:
      attributes = {attribute(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 1u + r.byte(), 4),
                    attribute(MLX5_IB_ATTR_QUERY_PORT, answer, 64)};
      ioctl(r, UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, attributes);
  }
}

void VerbsClient::alloc_events(Reader& r) {
  if (r.pick(2) == 0) {
    std::vector<ib_uverbs_attr> attributes = {
        attribute(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, 0),
        attribute(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, r.byte(), 4)};
    if (ioctl(r, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, attributes) !=
        0)
      return;
    const std::uint32_t fd = found_handle(attributes, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE);
    note(Kind::devx_events, fd, fd);
    return;
  }
  std::vector<ib_uverbs_attr> attributes = {attribute(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0)};
  ioctl(r, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, attributes);
}

// Hears of events of a DEVX object, through a channel or an eventfd.
void VerbsClient::subscribe(Reader& r) {
  const auto kind = static_cast<Kind>(static_cast<unsigned>(Kind::devx_qp) - r.pick(4));
  std::uint8_t* types = call_ + UserMemory::kPage;
  std::memset(types, 0, 64);
  r.take(types, 4);
  std::vector<ib_uverbs_attr> attributes = {
      attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, handle(r, Kind::devx_events)),
      attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, handle(r, kind)),
      attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, r.byte(), 8)};
  const unsigned bytes = 2 + r.byte();
  const std::uint64_t list = bytes > 8 ? pointer(types) : load<std::uint64_t>(types);
  attributes.push_back(attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, list, bytes));
  const std::uint8_t with_eventfd = r.byte();
  if (with_eventfd != 0) {
    const int fd = with_eventfd == 1 ? eventfd(0, EFD_NONBLOCK) : with_eventfd;
    attributes.push_back(
        attribute(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, static_cast<std::uint32_t>(fd), 4));
  }
  ioctl(r, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, attributes);
}

// The ioctl form of a write() command.
void VerbsClient::invoke_write(Reader& r) {
  std::uint8_t* in = call_ + UserMemory::kPage;
  std::memset(in, 0, 256);
  r.take(in, 6);
  std::vector<ib_uverbs_attr> attributes = {
      attribute(UVERBS_ATTR_CORE_IN, pointer(in), 4u * r.byte()),
      attribute(UVERBS_ATTR_CORE_OUT, pointer(output_), 4u * r.byte()),
      attribute(UVERBS_ATTR_WRITE_CMD, r.byte(), 4),
  };
  ioctl(r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, attributes);
}

// Any object, any method, any attributes.
void VerbsClient::raw_ioctl(Reader& r) {
  const unsigned object = r.byte() % 24 + (r.byte() & 1) * 0x1000u;
  const unsigned method = r.byte() % 8 + (r.byte() & 1) * 0x1000u;
  std::vector<ib_uverbs_attr> attributes;
  for (unsigned count = r.pick(6); count != 0; --count) {
    const unsigned id = r.byte() % 8 + (count & 1) * 0x1000u;
    attributes.push_back(attribute(id, address(r, output_), r.byte()));
  }
  ioctl(r, object, method, attributes);
}

// Puts the mailbox attributes behind the handle's; both carry ids that follow on each other.
int VerbsClient::devx(Reader& r, unsigned object, unsigned method, std::vector<ib_uverbs_attr> attributes,
                      std::span<const std::uint8_t> in, std::size_t out_bytes, std::uint32_t* made) {
  std::uint8_t* mailbox = call_ + UserMemory::kPage;
  const std::size_t bytes = std::min(in.size(), UserMemory::kSlotBytes - UserMemory::kPage);
  if (bytes != 0) std::memcpy(mailbox, in.data(), bytes);
  std::memset(output_, 0, std::min(out_bytes, kAnswers));
  const unsigned first = (1u << UVERBS_ID_NS_SHIFT) + static_cast<unsigned>(attributes.size());
  attributes.push_back(attribute(first, pointer(mailbox), bytes));
  attributes.push_back(attribute(first + 1, pointer(output_), out_bytes));
  // Up to 8 bytes travel in the attribute itself.
  if (bytes <= 8) attributes[attributes.size() - 2].data = bytes == 8 ? load<std::uint64_t>(mailbox) : 0;
  const int result = ioctl(r, object, method, attributes);
  if (made != nullptr) *made = found_handle(attributes, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
  return result;
}

void VerbsClient::devx_other(Reader& r, std::span<const std::uint8_t> in, std::size_t out_bytes) {
  devx(r, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, {}, in, out_bytes, nullptr);
}

void VerbsClient::devx_create(Reader& r, Kind kind, std::span<const std::uint8_t> in, std::size_t out_bytes) {
  std::uint32_t h = 0;
  const int result = devx(r, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
                          {attribute(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0)}, in, out_bytes, &h);
  // The number is in bytes 9 to 11 of every such output.
  if (result == 0)
    note(kind, h, static_cast<std::uint32_t>(output_[9] << 16 | output_[10] << 8 | output_[11]));
}

void VerbsClient::devx_modify(Reader& r, Kind kind, std::span<const std::uint8_t> in, std::size_t out_bytes) {
  const std::uint32_t h = handle(r, kind);
  devx(r, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
       {attribute(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, h)}, in, out_bytes, nullptr);
}

void VerbsClient::devx_query(Reader& r, Kind kind, std::span<const std::uint8_t> in, std::size_t out_bytes) {
  const std::uint32_t h = handle(r, kind);
  devx(r, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY,
       {attribute(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, h)}, in, out_bytes, nullptr);
}

void VerbsClient::devx_destroy(Reader& r, Kind kind) {
  destroy_object(r, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
                 MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, kind);
}

}  // namespace belfry::fuzz
