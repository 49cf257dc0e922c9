#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "belfry/host/device_list.hpp"
#include "host/nic_support.hpp"

namespace belfry::host {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Context soft() {
  ContextOptions options;
  options.nic = "soft";
  return Context::open(options);
}

// Guards against the software NIC not being told from hardware, or not by its vendor id as an mlx5.
TEST(NicContext, DeviceIsKnownForWhatItIs) {
  DeviceList list;
  ASSERT_GE(list.size(), 1u);
  const DeviceInfo& info = list.probe(0);
  EXPECT_TRUE(info.software_nic) << info.board_id;
  EXPECT_TRUE(info.mlx5());
  EXPECT_EQ(info.vendor_id, kMellanoxVendorId);
  EXPECT_EQ(info.first_active_port, 1u);
  EXPECT_NE(info.guid, 0u);
  EXPECT_EQ(info.problem, "");
}

// Guards against choices that are made without being told, or told and not made.
TEST(NicContext, DecisionsAreMadeAndTold) {
  const Context context = soft();
  EXPECT_TRUE(context.is_software_nic());
  EXPECT_TRUE(context.is_mlx5());
  EXPECT_THAT(context.decisions(), Contains(HasSubstr("software NIC was asked for")));
  EXPECT_THAT(context.decisions(),
              Contains(HasSubstr("GID index " + std::to_string(context.gid().entry.index))));
  EXPECT_THAT(context.decisions(), Contains(HasSubstr("path MTU " + std::to_string(context.mtu().bytes))));
  EXPECT_THAT(context.decisions(), Contains(HasSubstr("DEVX: available")));
  EXPECT_EQ(context.depth().initiator, context.limits().max_qp_init_rd_atom);
  if (context.link() == LinkLayer::ethernet) {
    EXPECT_EQ(context.gid().entry.type, GidType::roce_v2);
    EXPECT_EQ(scope_of(context.gid().entry.gid), GidScope::ipv4);
    EXPECT_EQ(context.gid().entry.index, 3);
    EXPECT_EQ(context.gid().entry.netdev, "belfry0");
    EXPECT_EQ(context.mtu().bytes, 1024u);
    EXPECT_THAT(context.mtu().reason, HasSubstr("1500"));
  } else {
    EXPECT_EQ(context.gid().entry.index, 0);
    EXPECT_EQ(context.mtu().bytes, 4096u);
    EXPECT_NE(context.port_attributes().lid, 0);
  }
}

// Guards against overrides that are not obeyed, or obeyed without a check.
TEST(NicContext, Overrides) {
  ContextOptions options;
  options.nic = "soft";
  options.path_mtu = 512;
  options.gid_index = 0;
  const Context context = Context::open(options);
  EXPECT_EQ(context.mtu().bytes, 512u);
  EXPECT_EQ(context.gid().entry.index, 0);
  options.gid_index = 200;
  expect_error(ErrorKind::bad_argument, [&] { Context::open(options); });
  options.gid_index.reset();
  options.nic = "no_such_device";
  expect_error(ErrorKind::no_device, [&] { Context::open(options); });
  options.nic = "mlx5_0:9";
  expect_error(ErrorKind::bad_argument, [&] { Context::open(options); });
}

// Guards against a handle that outlives its device: copies must keep it open, in any order of death.
TEST(NicContext, HandlesKeepWhatTheyNeed) {
  std::optional<Context> context = soft();
  std::optional<ProtectionDomain> domain(*context);
  context.reset();
  Memory memory = Memory::allocate(*domain, 100);
  domain.reset();
  memory.data()[99] = std::byte{1};
  EXPECT_NE(memory.rkey(), 0u);
  const Memory copy = memory;
  memory = Memory::allocate(ProtectionDomain(soft()), 50);
  EXPECT_EQ(copy.data()[99], std::byte{1});
  EXPECT_EQ(copy.window().length, 100u);
}

// Guards against adopted memory being freed, and nonsense reaching the driver.
TEST(NicMemory, AdoptsAndRefuses) {
  const ProtectionDomain domain(soft());
  std::vector<std::byte> mine(1000);
  {
    const Memory memory = Memory::adopt(domain, mine.data(), mine.size(), Access::local_write);
    EXPECT_FALSE(memory.owns());
    EXPECT_EQ(memory.window().address, reinterpret_cast<std::uint64_t>(mine.data()));
  }
  mine[0] = std::byte{1};
  expect_error(ErrorKind::bad_argument, [&] { Memory::adopt(domain, nullptr, 10); });
  expect_error(ErrorKind::bad_argument, [&] { Memory::adopt(domain, mine.data(), 0); });
  expect_error(ErrorKind::bad_argument, [&] { Memory::allocate(domain, 10, Access::remote_write); });
}

/// In a process of its own: registers 1 MiB where 64 KiB may be locked. \return 0 if the error says so
int register_too_much() {
  const rlimit limit{64 << 10, 64 << 10};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 10;
  setenv("BELFRY_SOFTNIC_MEMLOCK", "enforce", 1);
  try {
    const ProtectionDomain domain(soft());
    Memory::allocate(domain, 1 << 20);
  } catch (const Error& error) {
    const std::string_view text = error.what();
    const auto says = [&](const char* what) { return text.find(what) != std::string_view::npos; };
    if (error.kind() != ErrorKind::locked_memory) return 11;
    return says("RLIMIT_MEMLOCK is 64 KiB") && says("ulimit -l unlimited") ? 0 : 12;
  }
  return 13;
}

// Guards against a registration beyond the locked-memory limit that fails without naming it.
TEST(NicMemory, LockedMemoryLimitIsNamed) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(register_too_much());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Guards against huge pages and alignment being dropped on the way to the allocation.
TEST(NicMemory, AllocationOptions) {
  const ProtectionDomain domain(soft());
  const Memory memory = Memory::allocate(domain, 1 << 20, kAllAccess, {1 << 16, true});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % (1 << 16), 0u);
  EXPECT_TRUE(memory.owns());
}

}  // namespace
}  // namespace belfry::host
