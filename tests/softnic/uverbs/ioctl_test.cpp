// The ioctl interface: framing, attributes, and the methods that are not DEVX.

#include "client.hpp"
#include "softnic/firmware/nic_core.hpp"
#include "softnic/gpu/guarded_memory.hpp"

namespace belfry::softnic::test {
namespace {

std::vector<std::byte> call_of(ib_uverbs_ioctl_hdr header,
                               const std::vector<ib_uverbs_attr>& attributes = {}) {
  std::vector<std::byte> call(sizeof header + attributes.size() * sizeof(ib_uverbs_attr));
  std::memcpy(call.data(), &header, sizeof header);
  if (!attributes.empty())
    std::memcpy(call.data() + sizeof header, attributes.data(), call.size() - sizeof header);
  return call;
}

ib_uverbs_ioctl_hdr gid_header(std::uint16_t attributes) {
  ib_uverbs_ioctl_hdr header{};
  header.object_id = UVERBS_OBJECT_DEVICE;
  header.method_id = UVERBS_METHOD_QUERY_GID_ENTRY;
  header.num_attrs = attributes;
  header.length = static_cast<std::uint16_t>(sizeof header + attributes * sizeof(ib_uverbs_attr));
  header.driver_id = RDMA_DRIVER_MLX5;
  return header;
}

// Guards against a call whose header lies about what follows.
TEST(UverbsIoctl, HeadersAreChecked) {
  Opened client;
  const auto run = [&](const ib_uverbs_ioctl_hdr& header) {
    auto call = call_of(header);
    return -client.file->ioctl(RDMA_VERBS_IOCTL, call.data());
  };
  const ib_uverbs_ioctl_hdr good = gid_header(0);
  EXPECT_EQ(run(good), EINVAL);  // well framed, and its mandatory attributes are missing
  auto bad = good;
  bad.length += 1;
  EXPECT_EQ(run(bad), EINVAL);
  bad = gid_header(4000);
  EXPECT_EQ(run(bad), EINVAL);
  bad = good;
  bad.reserved1 = 1;
  EXPECT_EQ(run(bad), EPROTONOSUPPORT);
  bad = good;
  bad.reserved2 = 1;
  EXPECT_EQ(run(bad), EPROTONOSUPPORT);
  bad = good;
  bad.driver_id = RDMA_DRIVER_RXE;
  EXPECT_EQ(run(bad), EINVAL);
  EXPECT_EQ(client.file->ioctl(RDMA_VERBS_IOCTL, nullptr), -EFAULT);
  EXPECT_EQ(client.file->ioctl(RDMA_VERBS_IOCTL, reinterpret_cast<void*>(kNowhere)), -EFAULT);
  EXPECT_EQ(client.file->ioctl(0x5401, nullptr), -ENOTTY);
  // Attributes that run over the end of what is mapped.
  const Pages pages(1);
  const auto call = call_of(gid_header(4));
  std::byte* at = pages.data() + pages.size() - call.size();
  std::memcpy(at, call.data(), call.size());
  EXPECT_EQ(client.file->ioctl(RDMA_VERBS_IOCTL, at), -EFAULT);
}

// Guards against libibverbs giving up where it should fall back on write commands.
TEST(UverbsIoctl, CoreMethodsAreNotSupportedByProtocol) {
  Opened client;
  for (const auto& [object, method] : {std::pair{UVERBS_OBJECT_DEVICE, 0},
                                       {UVERBS_OBJECT_DEVICE, 3},
                                       {UVERBS_OBJECT_PD, 0},
                                       {UVERBS_OBJECT_CQ, 0},
                                       {UVERBS_OBJECT_QP, 0},
                                       {UVERBS_OBJECT_QP, 1},
                                       {UVERBS_OBJECT_MR, 1},
                                       {UVERBS_OBJECT_DM, 0}}) {
    Client::Attributes attributes;
    EXPECT_EQ(
        client.ioctl(static_cast<std::uint16_t>(object), static_cast<std::uint16_t>(method), attributes),
        EPROTONOSUPPORT);
  }
  Client::Attributes attributes;
  EXPECT_EQ(client.ioctl(0xffff, 0xffff, attributes), EPROTONOSUPPORT);
}

// Guards against attributes taken for what they are not: unknown, twice, too short, too long, with
// reserved bits, or with a length where a handle is.
TEST(UverbsIoctl, AttributesAreChecked) {
  Opened client;
  ib_uverbs_gid_entry entry{};
  const auto base = [&] {
    Client::Attributes a;
    a.add(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1, 8)
        .add(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 0, 8)
        .add(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0, 4)
        .out(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry);
    return a;
  };
  const auto run = [&](Client::Attributes a) {
    return client.ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, a);
  };
  EXPECT_EQ(run(base()), 0);
  auto a = base();
  EXPECT_EQ(run(a.add(77, 0, 8)), EPROTONOSUPPORT);
  a = base();
  EXPECT_EQ(run(a.add(77, 0, 8, 0)), 0);  // unknown, and optional
  a = base();
  EXPECT_EQ(run(a.add(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1, 8)), EINVAL);
  a = base();
  a.list[0].len = 3;
  EXPECT_EQ(run(a), EINVAL);
  a = base();
  a.list[0].len = 9;
  EXPECT_EQ(run(a), EINVAL);
  a = base();
  a.list[0].attr_data.reserved = 1;
  EXPECT_EQ(run(a), EINVAL);
  a = base();
  a.list[3].data = kNowhere;
  EXPECT_EQ(run(a), EFAULT);
  a = base();
  a.list[3].len = 4;
  EXPECT_EQ(run(a), EINVAL);
  a = base();
  a.list.pop_back();
  EXPECT_EQ(run(a), EINVAL);

  Client::Attributes handle;
  EXPECT_EQ(client.ioctl(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY,
                         handle.add(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, 1ull << 32, 0)),
            EINVAL);
  handle.list.clear();
  EXPECT_EQ(client.ioctl(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY,
                         handle.add(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, 0, 4)),
            EINVAL);
}

// Guards against GIDs that differ between the ioctl and the device: field case 14 reads this table.
TEST(UverbsIoctl, GidTableIsTheDevices) {
  Opened client(quiet_config(LinkLayer::ethernet));
  const auto& gids = client.nic->device(0).gids;
  ASSERT_EQ(gids.size(), 4u);
  std::vector<ib_uverbs_gid_entry> entries(8);
  std::uint64_t count = 0;
  const auto query = [&](std::uint64_t entry_bytes, std::size_t room) {
    Client::Attributes a;
    a.add(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_bytes, 8)
        .add(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, 4)
        .add(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, reinterpret_cast<std::uintptr_t>(entries.data()),
             static_cast<std::uint16_t>(room))
        .out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count);
    return client.ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, a);
  };
  constexpr std::size_t kEntry = sizeof(ib_uverbs_gid_entry);
  ASSERT_EQ(query(kEntry, 8 * kEntry), 0);
  EXPECT_EQ(count, 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(std::memcmp(entries[i].gid, gids[i].gid.data(), 16), 0);
    EXPECT_EQ(entries[i].gid_index, i);
    EXPECT_EQ(entries[i].port_num, 1u);
    EXPECT_EQ(entries[i].gid_type, static_cast<std::uint32_t>(gids[i].type));
  }
  EXPECT_EQ(query(kEntry, 3 * kEntry), EINVAL);      // no room for the fourth
  EXPECT_EQ(query(kEntry, 4 * kEntry + 1), EINVAL);  // no whole number of entries
  EXPECT_EQ(query(0, 4 * kEntry), EINVAL);
  EXPECT_EQ(query(16, 64), 0);  // an older library's entries are shorter
  EXPECT_EQ(std::memcmp(entries.data(), gids[0].gid.data(), 16), 0);
}

// Guards against indices behind the table and ports that are not there.
TEST(UverbsIoctl, GidEntriesAreBounded) {
  Opened client;
  ib_uverbs_gid_entry entry{};
  const auto query = [&](std::uint64_t port, std::uint64_t index, std::uint64_t flags) {
    Client::Attributes a;
    a.add(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port, 8)
        .add(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index, 8)
        .add(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, flags, 4)
        .out(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry);
    return client.ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, a);
  };
  EXPECT_EQ(query(1, 0, 0), 0);
  EXPECT_EQ(query(1, 1, 0), EINVAL);
  EXPECT_EQ(query(1, UINT64_MAX, 0), EINVAL);
  EXPECT_EQ(query(2, 0, 0), EINVAL);
  EXPECT_EQ(query(1, 0, 1), EINVAL);
}

// Guards against UARs that share a page, pages that are freed under a queue, and offsets that the
// application cannot map.
TEST(UverbsIoctl, UarsHavePagesOfTheirOwn) {
  Opened client;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 3; ++i) {
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t id = 0;
    Client::Attributes a;
    a.add(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0, 0)
        .add(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, static_cast<std::uint64_t>(i % 2), 8)
        .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset)
        .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, length)
        .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, id);
    ASSERT_EQ(client.ioctl(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, a), 0);
    EXPECT_EQ(length, 4096u);
    EXPECT_GE(offset, 2304u * 4096u);  // behind the offsets that carry a command
    EXPECT_NE(a.list[2].flags & UVERBS_ATTR_F_VALID_OUTPUT, 0);
    offsets.push_back(offset);
    ids.push_back(id);
    a.list[1].data = 2;
    EXPECT_EQ(client.ioctl(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, a), EOPNOTSUPP);
  }
  EXPECT_NE(offsets[0], offsets[1]);
  EXPECT_NE(offsets[1], offsets[2]);
  EXPECT_NE(ids[0], ids[1]);

  const std::uint32_t cq = client.create_cq(64).core_as<ib_uverbs_create_cq_resp>().cq_handle;
  const auto destroy = [&] {
    Client::Attributes a;
    a.add(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, client.uar_handle, 0);
    return client.ioctl(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, a);
  };
  EXPECT_EQ(destroy(), EBUSY);
  ib_uverbs_destroy_cq_resp gone{};
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DESTROY_CQ, cq, &gone), 0);
  EXPECT_EQ(destroy(), 0);
  EXPECT_EQ(destroy(), ENOENT);
}

// Guards against a region's data that QUERY_MR tells otherwise than they were registered, and against
// dma-buf registrations that pretend to work.
TEST(UverbsIoctl, QueryMrAndDmabuf) {
  Opened client;
  const Pages pages(1);
  const std::uint32_t pd = client.alloc_pd();
  const auto mr = client.reg_mr(pd, pages.address() + 64, 100, IB_UVERBS_ACCESS_LOCAL_WRITE)
                      .core_as<ib_uverbs_reg_mr_resp>();
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
  const auto query = [&](std::uint32_t handle) {
    Client::Attributes a;
    a.add(UVERBS_ATTR_QUERY_MR_HANDLE, handle, 0)
        .out(UVERBS_ATTR_QUERY_MR_RESP_LKEY, lkey)
        .out(UVERBS_ATTR_QUERY_MR_RESP_RKEY, rkey)
        .out(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, length)
        .out(UVERBS_ATTR_QUERY_MR_RESP_IOVA, iova);
    return client.ioctl(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, a);
  };
  EXPECT_EQ(query(mr.mr_handle), 0);
  EXPECT_EQ(lkey, mr.lkey);
  EXPECT_EQ(rkey, mr.rkey);
  EXPECT_EQ(length, 100u);
  EXPECT_EQ(iova, pages.address() + 64);
  EXPECT_EQ(query(pd), EINVAL);
  EXPECT_EQ(query(777), ENOENT);

  Client::Attributes a;
  a.add(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0)
      .add(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd, 0)
      .add(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 0, 8)
      .add(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 4096, 8)
      .add(UVERBS_ATTR_REG_DMABUF_MR_IOVA, 0, 8)
      .add(UVERBS_ATTR_REG_DMABUF_MR_FD, 0, 4)
      .add(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 1, 4)
      .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, lkey)
      .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, rkey);
  EXPECT_EQ(client.ioctl(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, a), EOPNOTSUPP);
}

// Guards against GPU memory that is checked as if the process had it mapped, and against descriptors and
// ranges that a dma-buf registration takes unseen.
TEST(UverbsIoctl, GpuMemoryRegistersByAddressAndByDmabuf) {
  const GuardedMemory gpu(8192);
  GuardedLibrary::State state;
  Opened client;
  client.nic->impl().gpu.use(std::make_unique<GuardedLibrary>(gpu, state));
  const std::uint32_t pd = client.alloc_pd();
  const Reply made = client.reg_mr(pd, gpu.address(), gpu.size(), IB_UVERBS_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(made.error, 0);
  EXPECT_FALSE(client.nic->impl().gpu_payload.empty());
  EXPECT_EQ(client.reg_mr(pd, gpu.address(), gpu.size() + 1, IB_UVERBS_ACCESS_LOCAL_WRITE).error, EFAULT);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEREG_MR, made.core_as<ib_uverbs_reg_mr_resp>().mr_handle), 0);
  EXPECT_TRUE(client.nic->impl().gpu_payload.empty());

  const int file = ::memfd_create("no dma-buf", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, 8192), 0);
  const auto reg = [&](std::uint64_t iova, std::uint64_t length, int descriptor) {
    std::uint32_t key = 0;
    Client::Attributes a;
    a.add(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0)
        .add(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd, 0)
        .add(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 0, 8)
        .add(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length, 8)
        .add(UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova, 8)
        .add(UVERBS_ATTR_REG_DMABUF_MR_FD, static_cast<std::uint32_t>(descriptor), 4)
        .add(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, IB_UVERBS_ACCESS_LOCAL_WRITE, 4)
        .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, key)
        .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, key);
    return client.ioctl(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, a);
  };
  EXPECT_EQ(reg(0, 4096, file), EOPNOTSUPP) << "an iova that is no address of the GPU's";
  EXPECT_EQ(reg(gpu.address(), 0, file), EOPNOTSUPP);
  EXPECT_EQ(reg(gpu.address(), 4096, 9999), EBADF);
  EXPECT_EQ(reg(gpu.address(), 4096, file), EINVAL);
  ::close(file);
}

// Guards against domains whose number DEVX and verbs tell differently.
TEST(UverbsIoctl, PdQueryTellsTheNumber) {
  Opened client;
  const Reply made = client.plain(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{},
                                  {sizeof(ib_uverbs_alloc_pd_resp), sizeof(mlx5_ib_alloc_pd_resp)});
  std::uint32_t number = 0;
  Client::Attributes a;
  a.add(MLX5_IB_ATTR_QUERY_PD_HANDLE, made.core_as<ib_uverbs_alloc_pd_resp>().pd_handle, 0)
      .out(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, number);
  EXPECT_EQ(client.ioctl(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, a), 0);
  EXPECT_EQ(number, made.driver_as<mlx5_ib_alloc_pd_resp>().pdn);
}

}  // namespace
}  // namespace belfry::softnic::test
