#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "support.hpp"

// The forms that -D_FORTIFY_SOURCE makes of open(); no header declares them for direct use.
extern "C" {
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
}

namespace belfry::softnic::test {
namespace {

struct OpenForm {
  const char* name;
  std::function<int(const char*, int)> open;
};

const OpenForm kForms[] = {
    {"open", [](const char* p, int f) { return ::open(p, f); }},
    {"open64", [](const char* p, int f) { return ::open64(p, f); }},
    {"openat", [](const char* p, int f) { return ::openat(AT_FDCWD, p, f); }},
    {"openat64", [](const char* p, int f) { return ::openat64(AT_FDCWD, p, f); }},
    {"__open_2", [](const char* p, int f) { return __open_2(p, f); }},
    {"__open64_2", [](const char* p, int f) { return __open64_2(p, f); }},
    {"__openat_2", [](const char* p, int f) { return __openat_2(AT_FDCWD, p, f); }},
    {"__openat64_2", [](const char* p, int f) { return __openat64_2(AT_FDCWD, p, f); }},
};

// Guards against a form of open() that goes past the library, to a file that does not exist.
TEST(Open, EveryFormFindsTheFile) {
  for (const OpenForm& form : kForms) {
    const int fd = form.open(kFirmwareFile, O_RDONLY);
    ASSERT_GE(fd, 0) << form.name;
    EXPECT_EQ(read_all(fd), kFirmwareText) << form.name;
    EXPECT_EQ(close(fd), 0);
  }
}

// Guards against a form that treats real files differently, the mode of a new one included.
TEST(Open, EveryFormReachesRealFiles) {
  for (const OpenForm& form : kForms) {
    const int fd = form.open("/proc/self/comm", O_RDONLY);
    ASSERT_GE(fd, 0) << form.name;
    EXPECT_FALSE(read_all(fd).empty()) << form.name;
    EXPECT_EQ(close(fd), 0);
    errno = 0;
    EXPECT_EQ(form.open("/sys/class/none", O_RDONLY), -1) << form.name;
    EXPECT_EQ(errno, ENOENT) << form.name;
  }
  char name[] = "/tmp/softnic-open-XXXXXX";
  const int made = mkstemp(name);
  ASSERT_GE(made, 0);
  close(made);
  unlink(name);
  const int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0640);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(write(fd, "abc", 3), 3);
  close(fd);
  EXPECT_EQ(access(name, R_OK), 0);
  unlink(name);
}

// Guards against errors that differ from the kernel's for a file of sysfs.
TEST(Open, RefusesWhatSysfsRefuses) {
  const std::pair<std::pair<const char*, int>, int> cases[] = {
      {{kFirmwareFile, O_WRONLY}, EACCES},
      {{kFirmwareFile, O_RDWR}, EACCES},
      {{kFirmwareFile, O_RDONLY | O_CREAT | O_EXCL}, EEXIST},
      {{kFirmwareFile, O_RDONLY | O_DIRECTORY}, ENOTDIR},
      {{kIbDevice, O_RDONLY | O_NOFOLLOW}, ELOOP},
      {{kIbDevice, O_RDWR}, EISDIR},
      {{"/sys/class/infiniband/mlx5_9", O_RDONLY}, ENOENT},
      {{"/sys/class/infiniband/mlx5_0/fw_ver/", O_RDONLY}, ENOTDIR},
      {{"/dev/infiniband/uverbs16", O_RDWR}, ENOENT},
  };
  for (const auto& [arguments, error] : cases) {
    errno = 0;
    EXPECT_EQ(open(arguments.first, arguments.second, 0600), -1) << arguments.first;
    EXPECT_EQ(errno, error) << arguments.first << " flags " << arguments.second;
  }
  errno = 0;
  EXPECT_EQ(creat(kFirmwareFile, 0600), -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(fopen(kFirmwareFile, "w"), nullptr);
  EXPECT_EQ(errno, EACCES);
}

// Guards against a descriptor through which the tree could be changed.
TEST(Open, FilesCannotBeWritten) {
  const int fd = open(kFirmwareFile, O_RDONLY);
  ASSERT_GE(fd, 0);
  errno = 0;
  EXPECT_EQ(write(fd, "x", 1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_NE(pwrite(fd, "x", 1, 0), 1);
  EXPECT_EQ(ioctl(fd, TIOCGWINSZ, nullptr), -1);
  EXPECT_EQ(errno, ENOTTY);
  EXPECT_EQ(read_all(fd), kFirmwareText);
  close(fd);
}

// Guards against attributes of what is not there reading as empty text: programs tell the two apart.
TEST(Open, AttributeWithoutAValueFailsWhenItIsRead) {
  const int fd = open("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", O_RDONLY);
  ASSERT_GE(fd, 0);
  char buffer[64];
  errno = 0;
  EXPECT_EQ(read(fd, buffer, sizeof buffer), -1);
  EXPECT_EQ(errno, EINVAL);
  close(fd);
}

// Guards against close-on-exec being lost or invented.
TEST(Open, KeepsCloseOnExec) {
  for (const char* path : {kFirmwareFile, kIbDevice, kDevice}) {
    const bool device = path == kDevice;
    const int plain = open(path, device ? O_RDWR : O_RDONLY);
    const int closing = open(path, (device ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    ASSERT_GE(plain, 0) << path;
    ASSERT_GE(closing, 0) << path;
    EXPECT_EQ(fcntl(plain, F_GETFD) & FD_CLOEXEC, 0) << path;
    EXPECT_EQ(fcntl(closing, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) << path;
    close(plain);
    close(closing);
  }
}

// Guards against streams: those of C, those of C++, and one made of a descriptor, whose fclose() must
// free the descriptor.
TEST(Open, StreamsRead) {
  for (auto* opener : {&fopen, &fopen64}) {
    FILE* stream = opener(kFirmwareFile, "re");
    ASSERT_NE(stream, nullptr);
    char line[64] = {};
    EXPECT_NE(fgets(line, sizeof line, stream), nullptr);
    EXPECT_STREQ(line, kFirmwareText);
    EXPECT_EQ(fclose(stream), 0);
  }
  std::ifstream file(kFirmwareFile);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), kFirmwareText);

  const int fd = open(kFirmwareFile, O_RDONLY);
  FILE* adopted = fdopen(fd, "r");
  ASSERT_NE(adopted, nullptr);
  EXPECT_EQ(fclose(adopted), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // takes the number that has become free
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(ioctl(ends[0], TIOCGWINSZ, nullptr), -1);
  close(ends[0]);
  close(ends[1]);
}

// Guards against relative paths that are not found, from a directory of ours, from a real one and from
// the working directory.
TEST(Open, RelativePaths) {
  const int ours = open(kIbDevice, O_RDONLY | O_DIRECTORY);
  const int real = open("/sys/class", O_RDONLY | O_DIRECTORY);
  ASSERT_GE(ours, 0);
  ASSERT_GE(real, 0);
  const std::pair<int, const char*> starts[] = {
      {ours, "fw_ver"}, {ours, "device/infiniband/mlx5_0/fw_ver"}, {real, "infiniband/mlx5_0/fw_ver"}};
  for (const auto& [start, path] : starts) {
    const int fd = openat(start, path, O_RDONLY);
    ASSERT_GE(fd, 0) << path;
    EXPECT_EQ(read_all(fd), kFirmwareText);
    close(fd);
  }
  EXPECT_EQ(in_child([] {
              if (chdir("/sys/class") != 0) return 1;
              const int fd = open("infiniband/mlx5_0/fw_ver", O_RDONLY);
              return fd >= 0 && read_all(fd) == kFirmwareText ? 0 : 2;
            }),
            0);
  errno = 0;
  EXPECT_EQ(openat(ours, "nothing", O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
  close(ours);
  close(real);
}

// Guards against errno that a call which succeeds leaves behind.
TEST(Open, SuccessLeavesErrnoAlone) {
  errno = 77;
  const int fd = open(kFirmwareFile, O_RDONLY);
  EXPECT_EQ(errno, 77);
  EXPECT_EQ(access(kFirmwareFile, R_OK), 0);
  EXPECT_EQ(errno, 77);
  close(fd);
  EXPECT_EQ(errno, 77);
}

}  // namespace
}  // namespace belfry::softnic::test
