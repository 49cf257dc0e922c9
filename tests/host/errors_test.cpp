#include "belfry/host/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr LockedMemoryLimit kSmall{64 << 10, 128 << 10};
constexpr LockedMemoryLimit kNone{};

// Guards against "cannot allocate memory" with no word about the limit that is behind it.
TEST(Errors, LockedMemoryLimitIsNamedWithTheRemedy) {
  const Error error = verbs_error(VerbsCall::reg_mr, ENOMEM, "a region of 1 MiB", 1 << 20, kSmall);
  EXPECT_EQ(error.kind(), ErrorKind::locked_memory);
  EXPECT_EQ(error.code(), ENOMEM);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("RLIMIT_MEMLOCK"), HasSubstr("64 KiB"), HasSubstr("128 KiB"),
                                  HasSubstr("1 MiB"), HasSubstr("ulimit -l unlimited"),
                                  HasSubstr("limits.conf"), HasSubstr("--ulimit memlock=-1")));
}

// Guards against blaming the limit where there is none, or where the region is far below it.
TEST(Errors, LimitIsNotBlamedWithoutCause) {
  EXPECT_EQ(verbs_error(VerbsCall::reg_mr, ENOMEM, "", 1 << 20, kNone).kind(), ErrorKind::system);
  const LockedMemoryLimit large{std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  EXPECT_EQ(verbs_error(VerbsCall::reg_mr, ENOMEM, "", 4096, large).kind(), ErrorKind::system);
  EXPECT_EQ(verbs_error(VerbsCall::alloc_pd, ENOMEM, "", 0, kSmall).kind(), ErrorKind::system);
}

// Guards against a queue that does not fit in the limit being reported as a lack of memory.
TEST(Errors, QueuesPinMemoryToo) {
  EXPECT_EQ(verbs_error(VerbsCall::create_qp, ENOMEM, "", 0, kSmall).kind(), ErrorKind::locked_memory);
  EXPECT_EQ(verbs_error(VerbsCall::devx_register_umem, ENOMEM, "", 0, kSmall).kind(),
            ErrorKind::locked_memory);
}

// Guards against a missing device being reported without the software NIC as the way out.
TEST(Errors, NoDeviceNamesTheSoftwareNic) {
  const Error error = no_device_error("there is no RDMA device on this machine");
  EXPECT_EQ(error.kind(), ErrorKind::no_device);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("belfry softnic -- COMMAND"), HasSubstr("--nic soft")));
}

// Guards against a permission problem that looks like a missing device.
TEST(Errors, PermissionNamesTheDeviceFiles) {
  for (const int code : {EPERM, EACCES}) {
    const Error error = verbs_error(VerbsCall::open_device, code, "mlx5_0", 0, kNone);
    EXPECT_EQ(error.kind(), ErrorKind::permission);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("/dev/infiniband"), HasSubstr("mlx5_0"), HasSubstr("--device")));
  }
  EXPECT_THAT(verbs_error(VerbsCall::devx_create_qp, EPERM, "", 0, kNone).what(), HasSubstr("CAP_NET_RAW"));
}

// Guards against DEVX refusals that do not say that verbs queues would do.
TEST(Errors, MissingDevxNamesTheAlternatives) {
  const Error error = verbs_error(VerbsCall::devx_query_caps, EOPNOTSUPP, "", 0, kNone);
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("DEVX"), HasSubstr("verbs queues"), HasSubstr("mlx5")));
}

// Guards against a firmware refusal that hides status and syndrome, the only facts about it.
TEST(Errors, FirmwareRefusalShowsStatusAndSyndrome) {
  const Error error = devx_error(VerbsCall::devx_create_qp, EREMOTEIO, 0x03, 0x00c0ffee, "256 send blocks");
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("0x03"), HasSubstr("0x00c0ffee"), HasSubstr("CREATE_QP")));
  EXPECT_EQ(devx_error(VerbsCall::devx_create_qp, ENOMEM, 0, 0, "").kind(), ErrorKind::system);
}

// Guards against an unresolved RoCE peer being reported as a plain time-out of a system call.
TEST(Errors, UnresolvedPeerIsNotReachable) {
  const Error error = verbs_error(VerbsCall::modify_qp_to_rtr, ETIMEDOUT, "QP 1 to 10.0.0.2 QP 2", 0, kNone);
  EXPECT_EQ(error.kind(), ErrorKind::not_reachable);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("10.0.0.2"), HasSubstr("BELFRY_GID_INDEX")));
}

// Guards against any pair of call and errno without a message, or with the errno lost.
TEST(Errors, EveryCallAndErrnoHasAMessage) {
  for (int call = 0; call <= static_cast<int>(VerbsCall::init_object); ++call) {
    for (const int code : {EPERM, ENOMEM, EINVAL, EFAULT, EBUSY, ENODEV, EOPNOTSUPP, ETIMEDOUT, EIO, 12345}) {
      const Error error = verbs_error(static_cast<VerbsCall>(call), code, "something", 0, kSmall);
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(std::string(to_string(static_cast<VerbsCall>(call)))),
                                      HasSubstr("something"), HasSubstr("errno " + std::to_string(code))));
      EXPECT_FALSE(error.remedy().empty());
    }
  }
}

// Guards against sizes that are rounded to something false.
TEST(Errors, FormatsBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1000), "1000 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes(LockedMemoryLimit::kUnlimited), "unlimited");
}

}  // namespace
}  // namespace belfry::host
