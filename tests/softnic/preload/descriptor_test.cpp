#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "support.hpp"

namespace belfry::softnic::test {
namespace {

/// Whether a descriptor leads to a uverbs file: such a one knows the ioctl and refuses its argument; any
/// other does not know it.
bool is_device(int fd) {
  errno = 0;
  return ioctl(fd, RDMA_VERBS_IOCTL, nullptr) == -1 && errno == EFAULT;
}

// Guards against a device that does not answer, and against a last close that leaves it alive.
TEST(Descriptor, LastCloseDestroysTheDevice) {
  ASSERT_EQ(open_uverbs_memories(), 0u);
  const int fd = open(kDevice, O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(is_device(fd));
  EXPECT_EQ(open_uverbs_memories(), 2u) << "the descriptor and the device's own";
  EXPECT_EQ(close(fd), 0);
  EXPECT_EQ(open_uverbs_memories(), 0u);
  errno = 0;
  EXPECT_EQ(close(fd), -1);
  EXPECT_EQ(errno, EBADF);
}

// Guards against a write to the device that reaches the memory behind the descriptor.
TEST(Descriptor, WriteIsACommand) {
  const int fd = open(kDevice, O_RDWR);
  ASSERT_GE(fd, 0);
  const char nonsense[64] = {1, 2, 3};
  errno = 0;
  EXPECT_EQ(write(fd, nonsense, sizeof nonsense), -1);
  EXPECT_EQ(errno, EINVAL);
  close(fd);
}

// Guards against a way of copying that makes a descriptor without the device, or a copy whose closing
// takes the device from the others.
TEST(Descriptor, CopiesShareTheDevice) {
  const int fd = open(kDevice, O_RDWR);
  ASSERT_GE(fd, 0);
  const int spare[] = {open("/dev/null", O_RDWR), open("/dev/null", O_RDWR)};
  std::vector<int> copies = {dup(fd), dup2(fd, spare[0]), dup3(fd, spare[1], O_CLOEXEC),
                             fcntl(fd, F_DUPFD, 50), fcntl(fd, F_DUPFD_CLOEXEC, 60)};
  EXPECT_EQ(close(fd), 0);
  while (!copies.empty()) {
    for (const int copy : copies) {
      ASSERT_TRUE(is_device(copy)) << copy;
      struct stat status {};
      ASSERT_EQ(fstat(copy, &status), 0);
      EXPECT_TRUE(S_ISCHR(status.st_mode));
    }
    EXPECT_EQ(close(copies.back()), 0);
    copies.pop_back();
  }
  EXPECT_EQ(open_uverbs_memories(), 0u);
}

// Guards against dup2() onto a device's descriptor: it closes the device, and the number is a file's.
TEST(Descriptor, CopyingOverADeviceClosesIt) {
  const int fd = open(kDevice, O_RDWR);
  const int other = eventfd(0, 0);
  ASSERT_EQ(dup2(other, fd), fd);
  EXPECT_EQ(open_uverbs_memories(), 0u);
  const std::uint64_t one = 1;
  EXPECT_EQ(write(fd, &one, sizeof one), 8);
  close(fd);
  close(other);
  errno = 0;
  EXPECT_EQ(dup2(-1, 200), -1);
  EXPECT_EQ(errno, EBADF);
}

// Guards against ranges: what they close must be forgotten, what they only mark must not.
TEST(Descriptor, ClosingRanges) {
  EXPECT_EQ(in_child([] {
              const int fd = open(kDevice, O_RDWR);
              if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) != 0 || !is_device(fd)) return 1;
              if (close_range(3, ~0u, 0) != 0 || open_uverbs_memories() != 0) return 2;
              const int again = open(kDevice, O_RDWR);
              closefrom(3);
              // The numbers are files' now, that of the device among them.
              for (int fresh = -1; fresh < again;) {
                const std::uint64_t one = 1;
                fresh = eventfd(0, 0);
                if (write(fresh, &one, sizeof one) != 8) return 3;
              }
              return 0;
            }),
            0);
}

// Guards against a descriptor that is closed behind the library's back: its number, used again, must not
// be taken for the device.
TEST(Descriptor, NumberUsedAgainIsNotTheDevice) {
  const int fd = open(kDevice, O_RDWR);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(syscall(SYS_close, fd), 0);
  const int event = eventfd(0, 0);
  ASSERT_EQ(event, fd) << "the lowest free number";
  const std::uint64_t one = 1;
  EXPECT_EQ(write(event, &one, sizeof one), 8);
  struct stat status {};
  EXPECT_EQ(fstat(event, &status), 0);
  EXPECT_FALSE(S_ISCHR(status.st_mode));
  close(event);
  EXPECT_EQ(open_uverbs_memories(), 0u);
}

// Guards against pages of registers that an application cannot map at the file's offsets.
TEST(Descriptor, DeviceCanBeMapped) {
  const int fd = open(kDevice, O_RDWR);
  ASSERT_GE(fd, 0);
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(page, MAP_FAILED);
  std::memset(page, 0, 4096);
  close(fd);
  EXPECT_EQ(munmap(page, 4096), 0);
}

// Guards against libibverbs finding the kernel's devices, or none, by netlink.
TEST(Descriptor, RdmaNetlinkIsRefused) {
  errno = 0;
  EXPECT_EQ(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
  const int route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  EXPECT_GE(route, 0);
  close(route);
}

/// Opens, copies, uses and closes, and counts what goes wrong.
void churn(std::atomic<unsigned>& wrong) {
  for (int i = 0; i < 200; ++i) {
    const int fd = open(kDevice, O_RDWR);
    const int copy = dup(fd);
    const int file = open(kFirmwareFile, O_RDONLY);
    if (fd < 0 || copy < 0 || file < 0) ++wrong;
    if (!is_device(copy)) ++wrong;
    close(fd);
    if (!is_device(copy)) ++wrong;
    if (read_all(file) != kFirmwareText) ++wrong;
    close(file);
    close(copy);
  }
}

// Guards against threads that take each other's descriptors: numbers are used again at once.
TEST(Descriptor, ManyThreads) {
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { churn(wrong); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(open_uverbs_memories(), 0u);
}

// Guards against a close that frees a device under a thread which is using it.
TEST(Descriptor, CloseDuringUse) {
  for (int round = 0; round < 50; ++round) {
    const int fd = open(kDevice, O_RDWR);
    ASSERT_GE(fd, 0);
    std::thread user([fd] {
      for (int i = 0; i < 200; ++i) ioctl(fd, RDMA_VERBS_IOCTL, nullptr);
    });
    close(fd);
    user.join();
  }
  EXPECT_EQ(open_uverbs_memories(), 0u);
}

}  // namespace
}  // namespace belfry::softnic::test
