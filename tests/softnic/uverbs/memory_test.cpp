// Protection domains, memory regions and address handles.

#include <sys/resource.h>

#include <cstdlib>

#include "client.hpp"
#include "softnic/uverbs/user_memory.hpp"

namespace belfry::softnic::test {
namespace {

constexpr std::uint32_t kLocal = IB_UVERBS_ACCESS_LOCAL_WRITE;

// Guards against domains that are freed under their regions and queues, and against handles that live on.
TEST(UverbsMemory, PdInUseIsBusy) {
  Opened client;
  const Pages pages(1);
  const std::uint32_t pd = client.alloc_pd();
  const Reply mr = client.reg_mr(pd, pages.address(), 4096, kLocal);
  ASSERT_EQ(mr.error, 0);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, pd), EBUSY);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEREG_MR, mr.core_as<ib_uverbs_reg_mr_resp>().mr_handle), 0);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, pd), 0);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, pd), ENOENT);
}

// Guards against a handle of one type, or of another file, being used as another's.
TEST(UverbsMemory, HandlesAreOfOneTypeAndOneFile) {
  Opened client;
  const Pages pages(1);
  const std::uint32_t pd = client.alloc_pd();
  const std::uint32_t mr =
      client.reg_mr(pd, pages.address(), 4096, kLocal).core_as<ib_uverbs_reg_mr_resp>().mr_handle;
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, mr), EINVAL);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEREG_MR, pd), EINVAL);
  EXPECT_EQ(client.reg_mr(mr, pages.address(), 4096, kLocal).error, EINVAL);
  EXPECT_EQ(client.reg_mr(1000, pages.address(), 4096, kLocal).error, EINVAL);
  EXPECT_EQ(client.reg_mr(UINT32_MAX, pages.address(), 4096, kLocal).error, EINVAL);
  Opened other(client);
  EXPECT_EQ(other.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, pd), ENOENT);
  EXPECT_EQ(other.reg_mr(pd, pages.address(), 4096, kLocal).error, EINVAL);
}

// Guards against registrations that the NIC would fault on later: memory must be mapped from end to
// end, and writable where anyone is to write.
TEST(UverbsMemory, OnlyMappedMemoryRegisters) {
  Opened client;
  const std::uint32_t pd = client.alloc_pd();
  const Pages pages(2);
  const Pages read_only(1, PROT_READ);
  const Pages hidden(1, PROT_NONE);
  EXPECT_EQ(client.reg_mr(pd, pages.address() + 1, pages.size() - 1, kLocal).error, 0);
  EXPECT_EQ(client.reg_mr(pd, pages.address(), pages.size() + 1, kLocal).error, EFAULT);
  EXPECT_EQ(client.reg_mr(pd, kNowhere, 64, kLocal).error, EFAULT);
  EXPECT_EQ(client.reg_mr(pd, hidden.address(), 64, 0).error, EFAULT);
  EXPECT_EQ(client.reg_mr(pd, read_only.address(), 64, kLocal).error, EFAULT);
  EXPECT_EQ(client.reg_mr(pd, read_only.address(), 64, IB_UVERBS_ACCESS_REMOTE_READ).error, 0);
  EXPECT_EQ(client.reg_mr(pd, pages.address(), 0, kLocal).error, EINVAL);
  EXPECT_EQ(client.reg_mr(pd, UINT64_MAX - 4095, 8192, kLocal).error, EINVAL);
  EXPECT_EQ(client.reg_mr(pd, pages.address(), UINT64_MAX, kLocal).error, EINVAL);
}

// Guards against a SIGBUS in the NIC: pages behind the end of a mapped file are no memory.
TEST(UverbsMemory, PagesBehindTheEndOfAFileFault) {
  Opened client;
  const std::uint32_t pd = client.alloc_pd();
  const int file = ::memfd_create("short", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, 4096), 0);
  void* mapped = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  EXPECT_EQ(client.reg_mr(pd, address, 4096, kLocal).error, 0);
  EXPECT_EQ(client.reg_mr(pd, address, 4097, kLocal).error, EFAULT);
  ::munmap(mapped, 8192);
  ::close(file);
}

// Guards against rights without sense: who lets others write must write itself; unknown rights.
TEST(UverbsMemory, RightsAreChecked) {
  Opened client;
  const Pages pages(1);
  const std::uint32_t pd = client.alloc_pd();
  const auto reg = [&](std::uint32_t access) { return client.reg_mr(pd, pages.address(), 64, access).error; };
  EXPECT_EQ(reg(IB_UVERBS_ACCESS_REMOTE_WRITE), EINVAL);
  EXPECT_EQ(reg(IB_UVERBS_ACCESS_REMOTE_ATOMIC | IB_UVERBS_ACCESS_REMOTE_READ), EINVAL);
  EXPECT_EQ(reg(kLocal | IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC), 0);
  EXPECT_EQ(reg(kLocal | IB_UVERBS_ACCESS_RELAXED_ORDERING), 0);
  EXPECT_EQ(reg(kLocal | 1u << 12), EINVAL);
  EXPECT_EQ(reg(kLocal | 1u << 31), EINVAL);
  EXPECT_EQ(reg(kLocal | IB_UVERBS_ACCESS_ON_DEMAND), EOPNOTSUPP);
}

// Guards against addresses of work requests whose page offset differs from the memory's.
TEST(UverbsMemory, PageOffsetsMustAgree) {
  Opened client;
  const Pages pages(1);
  ib_uverbs_reg_mr request{};
  request.pd_handle = client.alloc_pd();
  request.start = pages.address() + 8;
  request.length = 64;
  request.access_flags = kLocal;
  request.hca_va = 0x7000;
  EXPECT_EQ(client.plain(IB_USER_VERBS_CMD_REG_MR, request, {sizeof(ib_uverbs_reg_mr_resp), 0}).error,
            EINVAL);
  request.hca_va = 0x7008;
  EXPECT_EQ(client.plain(IB_USER_VERBS_CMD_REG_MR, request, {sizeof(ib_uverbs_reg_mr_resp), 0}).error, 0);
}

// Guards against a re-registration that fails and takes the region along, or leaves the old key valid.
TEST(UverbsMemory, ReregChangesAllOrNothing) {
  Opened client;
  const Pages pages(2);
  const std::uint32_t pd = client.alloc_pd();
  const std::uint32_t other_pd = client.alloc_pd();
  const auto made = client.reg_mr(pd, pages.address(), 64, kLocal).core_as<ib_uverbs_reg_mr_resp>();
  ib_uverbs_rereg_mr request{};
  request.mr_handle = made.mr_handle;
  request.pd_handle = other_pd;
  request.start = kNowhere;
  request.hca_va = kNowhere;
  request.length = 64;
  const Room room{sizeof(ib_uverbs_rereg_mr_resp), 0};
  const auto rereg = [&] { return client.plain(IB_USER_VERBS_CMD_REREG_MR, request, room); };
  EXPECT_EQ(rereg().error, EINVAL);  // nothing to change
  request.flags = 8;
  EXPECT_EQ(rereg().error, EOPNOTSUPP);
  request.flags = 1 | 2;  // memory and domain
  EXPECT_EQ(rereg().error, EFAULT);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, pd), EBUSY);  // still the old domain's
  request.start = request.hca_va = pages.address() + 4096;
  const Reply moved = rereg();
  ASSERT_EQ(moved.error, 0);
  EXPECT_NE(moved.core_as<ib_uverbs_rereg_mr_resp>().lkey, made.lkey);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, pd), 0);
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEALLOC_PD, other_pd), EBUSY);
  request.flags = 4;
  request.access_flags = IB_UVERBS_ACCESS_REMOTE_WRITE;
  EXPECT_EQ(rereg().error, EINVAL);
  request.mr_handle = 999;
  EXPECT_EQ(rereg().error, ENOENT);
  request.mr_handle = other_pd;
  EXPECT_EQ(rereg().error, EINVAL);
}

// Guards against stale keys: a key that is made after another one went must not be equal to it.
TEST(UverbsMemory, KeysAreNotReusedAtOnce) {
  Opened client;
  const Pages pages(1);
  const std::uint32_t pd = client.alloc_pd();
  const auto first = client.reg_mr(pd, pages.address(), 64, kLocal).core_as<ib_uverbs_reg_mr_resp>();
  EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEREG_MR, first.mr_handle), 0);
  EXPECT_NE(client.reg_mr(pd, pages.address(), 64, kLocal).core_as<ib_uverbs_reg_mr_resp>().lkey, first.lkey);
}

/// Sets the limit of locked memory and the variable that makes the NIC obey it, for one test.
class LockedMemoryLimit {
 public:
  explicit LockedMemoryLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_MEMLOCK, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_MEMLOCK, &limit);
    ::setenv("BELFRY_SOFTNIC_MEMLOCK", "enforce", 1);
  }
  ~LockedMemoryLimit() {
    ::setrlimit(RLIMIT_MEMLOCK, &before_);
    ::unsetenv("BELFRY_SOFTNIC_MEMLOCK");
  }

 private:
  rlimit before_{};
};

// Guards against field case 18 going unseen: 1 MiB with a limit of 64 KiB is ENOMEM, and what was
// given back counts no more.
TEST(UverbsMemory, LockedMemoryLimitIsObeyedOnRequest) {
  const Pages pages(256);
  {
    const LockedMemoryLimit limit(64 << 10);
    Opened client;
    const std::uint32_t pd = client.alloc_pd();
    EXPECT_EQ(client.reg_mr(pd, pages.address(), 1 << 20, kLocal).error, ENOMEM);
    const Reply fits = client.reg_mr(pd, pages.address(), 64 << 10, kLocal);
    ASSERT_EQ(fits.error, 0);
    EXPECT_EQ(client.reg_mr(pd, pages.address(), 1, kLocal).error, ENOMEM);
    EXPECT_EQ(client.destroy(IB_USER_VERBS_CMD_DEREG_MR, fits.core_as<ib_uverbs_reg_mr_resp>().mr_handle), 0);
    EXPECT_EQ(client.reg_mr(pd, pages.address(), 64 << 10, kLocal).error, 0);
  }
  Opened free_client;
  EXPECT_EQ(free_client.reg_mr(free_client.alloc_pd(), pages.address(), 1 << 20, kLocal).error, 0);
}

// Guards against copies that stop early, or fault in our process.
TEST(UverbsMemory, CopiesReportBadAddresses) {
  const Pages pages(3);
  const Pages read_only(1, PROT_READ);
  std::vector<char> buffer(2 * 4096 + 5, 'x');
  EXPECT_EQ(copy_out(pages.address() + 7, buffer.data(), buffer.size()), 0);
  std::vector<char> back(buffer.size());
  EXPECT_EQ(copy_in(back.data(), pages.address() + 7, back.size()), 0);
  EXPECT_EQ(back, buffer);
  EXPECT_EQ(copy_in(back.data(), pages.end() - 4, 8), EFAULT);
  EXPECT_EQ(copy_out(pages.end() - 4, back.data(), 8), EFAULT);
  EXPECT_EQ(copy_out(read_only.address(), back.data(), 1), EFAULT);
  EXPECT_EQ(copy_in(back.data(), UINT64_MAX, 8), EFAULT);
  EXPECT_EQ(copy_in(back.data(), kNowhere, 0), 0);
  EXPECT_EQ(check_cleared(pages.address() + 7 + buffer.size(), 1000), 0);
  EXPECT_EQ(check_cleared(pages.address(), 16), EOPNOTSUPP);
  EXPECT_EQ(check_cleared(pages.end() - 8, 16), EFAULT);
  EXPECT_EQ(clear_out(pages.address(), 2 * 4096), 0);
  EXPECT_EQ(clear_out(pages.end() - 8, 16), EFAULT);
}

// Guards against paths that no port of the device has.
TEST(UverbsMemory, AddressHandlesAreChecked) {
  for (const LinkLayer link : {LinkLayer::infiniband, LinkLayer::ethernet}) {
    Opened client(quiet_config(link));
    const std::uint32_t pd = client.alloc_pd();
    ib_uverbs_create_ah request{};
    request.pd_handle = pd;
    request.attr.port_num = 1;
    const Room room{sizeof(ib_uverbs_create_ah_resp), 0};
    const auto create = [&] { return client.plain(IB_USER_VERBS_CMD_CREATE_AH, request, room); };
    EXPECT_EQ(create().error, link == LinkLayer::ethernet ? EINVAL : 0);  // a GID is needed there
    request.attr.is_global = 1;
    const Reply made = create();
    ASSERT_EQ(made.error, 0);
    request.attr.grh.sgid_index = 200;
    EXPECT_EQ(create().error, EINVAL);
    request.attr.grh.sgid_index = 0;
    request.attr.port_num = 2;
    EXPECT_EQ(create().error, EINVAL);
    EXPECT_EQ(
        client.destroy(IB_USER_VERBS_CMD_DESTROY_AH, made.core_as<ib_uverbs_create_ah_resp>().ah_handle), 0);
  }
}

}  // namespace
}  // namespace belfry::softnic::test
