#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <functional>
#include <string>

#include "support.hpp"

// Forms for older programs and for -D_FORTIFY_SOURCE; no header declares them for direct use.
extern "C" {
int __xstat(int, const char*, struct stat*);
int __lxstat(int, const char*, struct stat*);
int __fxstat(int, int, struct stat*);
int __fxstatat(int, int, const char*, struct stat*, int);
int __xstat64(int, const char*, struct stat64*);
int __lxstat64(int, const char*, struct stat64*);
int __fxstat64(int, int, struct stat64*);
int __fxstatat64(int, int, const char*, struct stat64*, int);
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
char* __realpath_chk(const char*, char*, size_t);
}

namespace belfry::softnic::test {
namespace {

constexpr char kTarget[] = "../../devices/pcibe1f:00/be1f:00:00.0/infiniband/mlx5_0";
constexpr char kCanonical[] = "/sys/devices/pcibe1f:00/be1f:00:00.0/infiniband/mlx5_0";

struct StatForm {
  const char* name;
  bool follows;
  std::function<int(const char*, struct stat*)> call;
};

struct stat64* wide(struct stat* status) {
  return reinterpret_cast<struct stat64*>(status);
}

/// Through a descriptor: the path is opened first.
template <class Call>
int of_descriptor(const char* path, Call call) {
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return -1;
  const int result = call(fd);
  const int error = errno;
  close(fd);
  errno = error;
  return result;
}

const StatForm kForms[] = {
    {"stat", true, [](const char* p, struct stat* s) { return ::stat(p, s); }},
    {"stat64", true, [](const char* p, struct stat* s) { return ::stat64(p, wide(s)); }},
    {"lstat", false, [](const char* p, struct stat* s) { return ::lstat(p, s); }},
    {"lstat64", false, [](const char* p, struct stat* s) { return ::lstat64(p, wide(s)); }},
    {"fstat", true,
     [](const char* p, struct stat* s) { return of_descriptor(p, [&](int fd) { return ::fstat(fd, s); }); }},
    {"fstat64", true,
     [](const char* p, struct stat* s) {
       return of_descriptor(p, [&](int fd) { return ::fstat64(fd, wide(s)); });
     }},
    {"fstatat", true, [](const char* p, struct stat* s) { return ::fstatat(AT_FDCWD, p, s, 0); }},
    {"fstatat nofollow", false,
     [](const char* p, struct stat* s) { return ::fstatat(AT_FDCWD, p, s, AT_SYMLINK_NOFOLLOW); }},
    {"fstatat64", true, [](const char* p, struct stat* s) { return ::fstatat64(AT_FDCWD, p, wide(s), 0); }},
    {"fstatat empty path", true,
     [](const char* p, struct stat* s) {
       return of_descriptor(p, [&](int fd) { return ::fstatat(fd, "", s, AT_EMPTY_PATH); });
     }},
    {"__xstat", true, [](const char* p, struct stat* s) { return __xstat(1, p, s); }},
    {"__xstat64", true, [](const char* p, struct stat* s) { return __xstat64(1, p, wide(s)); }},
    {"__lxstat", false, [](const char* p, struct stat* s) { return __lxstat(1, p, s); }},
    {"__lxstat64", false, [](const char* p, struct stat* s) { return __lxstat64(1, p, wide(s)); }},
    {"__fxstat", true,
     [](const char* p, struct stat* s) {
       return of_descriptor(p, [&](int fd) { return __fxstat(1, fd, s); });
     }},
    {"__fxstat64", true,
     [](const char* p, struct stat* s) {
       return of_descriptor(p, [&](int fd) { return __fxstat64(1, fd, wide(s)); });
     }},
    {"__fxstatat", true, [](const char* p, struct stat* s) { return __fxstatat(1, AT_FDCWD, p, s, 0); }},
    {"__fxstatat64", true,
     [](const char* p, struct stat* s) { return __fxstatat64(1, AT_FDCWD, p, wide(s), 0); }},
};

// Guards against a form of stat() that goes past the library, or that follows a link where it must not.
TEST(Stat, EveryFormAgrees) {
  for (const StatForm& form : kForms) {
    struct stat device {};
    ASSERT_EQ(form.call(kDevice, &device), 0) << form.name;
    EXPECT_TRUE(S_ISCHR(device.st_mode)) << form.name;
    EXPECT_EQ(device.st_rdev, makedev(231, 192)) << form.name;
    struct stat file {};
    ASSERT_EQ(form.call(kFirmwareFile, &file), 0) << form.name;
    EXPECT_EQ(file.st_mode, S_IFREG | 0444) << form.name;
    struct stat link {};
    ASSERT_EQ(form.call(kIbDevice, &link), 0) << form.name;
    EXPECT_EQ(form.follows ? S_ISDIR(link.st_mode) : S_ISLNK(link.st_mode), 1) << form.name;
    struct stat missing {};
    errno = 0;
    EXPECT_EQ(form.call("/sys/class/infiniband/none", &missing), -1) << form.name;
    EXPECT_EQ(errno, ENOENT) << form.name;
    struct stat real {};
    ASSERT_EQ(form.call("/proc/self/comm", &real), 0) << form.name;
    EXPECT_TRUE(S_ISREG(real.st_mode)) << form.name;
  }
}

// Guards against statx() and stat() telling different things.
TEST(Stat, StatxAgrees) {
  struct statx extended {};
  ASSERT_EQ(statx(AT_FDCWD, kDevice, 0, STATX_BASIC_STATS, &extended), 0);
  struct stat plain {};
  ASSERT_EQ(stat(kDevice, &plain), 0);
  EXPECT_EQ(extended.stx_mode, plain.st_mode);
  EXPECT_EQ(makedev(extended.stx_rdev_major, extended.stx_rdev_minor), plain.st_rdev);
  EXPECT_EQ(makedev(extended.stx_dev_major, extended.stx_dev_minor), plain.st_dev);
  EXPECT_EQ(extended.stx_ino, plain.st_ino);
  const int fd = open(kFirmwareFile, O_RDONLY);
  ASSERT_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
  EXPECT_EQ(extended.stx_mode, S_IFREG | 0444);
  close(fd);
  ASSERT_EQ(statx(AT_FDCWD, "/proc/self/comm", 0, STATX_BASIC_STATS, &extended), 0);
}

// Guards against the number in sysfs, behind which programs look for the device, leading elsewhere.
TEST(Stat, DeviceNumberLeadsBack) {
  struct stat by_number {};
  ASSERT_EQ(stat("/dev/char/231:192", &by_number), 0);
  EXPECT_TRUE(S_ISCHR(by_number.st_mode));
  struct stat sysfs {};
  ASSERT_EQ(stat("/sys/dev/char/231:192/ibdev", &sysfs), 0);
}

// Guards against a way out of the tree that ends nowhere.
TEST(Stat, PathsOutOfTheTreeReachTheRealOne) {
  struct stat direct {};
  struct stat around {};
  ASSERT_EQ(stat("/sys/class/net", &direct), 0);
  ASSERT_EQ(stat("/sys/class/infiniband/../net", &around), 0);
  EXPECT_EQ(direct.st_ino, around.st_ino);
  EXPECT_EQ(direct.st_dev, around.st_dev);
}

// Guards against a form of access() that goes past the library.
TEST(Access, EveryFormAgrees) {
  const std::pair<const char*, std::function<int(const char*, int)>> forms[] = {
      {"access", [](const char* p, int m) { return access(p, m); }},
      {"faccessat", [](const char* p, int m) { return faccessat(AT_FDCWD, p, m, 0); }},
      {"euidaccess", [](const char* p, int m) { return euidaccess(p, m); }},
      {"eaccess", [](const char* p, int m) { return eaccess(p, m); }},
  };
  for (const auto& [name, call] : forms) {
    EXPECT_EQ(call(kFirmwareFile, R_OK), 0) << name;
    EXPECT_EQ(call(kDevice, R_OK | W_OK), 0) << name;
    EXPECT_EQ(call(kIbDevice, R_OK | X_OK), 0) << name;
    errno = 0;
    EXPECT_EQ(call(kFirmwareFile, W_OK), -1) << name;
    EXPECT_EQ(errno, EACCES) << name;
    EXPECT_EQ(call("/dev/infiniband/rdma_cm", F_OK), -1) << name;
    EXPECT_EQ(errno, ENOENT) << name;
    EXPECT_EQ(call("/proc/self/comm", R_OK), 0) << name;
  }
}

// Guards against a form of readlink() that goes past the library, and against one that writes past its
// buffer or ends it with a zero.
TEST(Readlink, EveryFormAgrees) {
  using Form = std::function<ssize_t(const char*, char*, size_t)>;
  const std::pair<const char*, Form> forms[] = {
      {"readlink", [](const char* p, char* b, size_t n) { return readlink(p, b, n); }},
      {"readlinkat", [](const char* p, char* b, size_t n) { return readlinkat(AT_FDCWD, p, b, n); }},
      {"__readlink_chk", [](const char* p, char* b, size_t n) { return __readlink_chk(p, b, n, n); }},
      {"__readlinkat_chk",
       [](const char* p, char* b, size_t n) { return __readlinkat_chk(AT_FDCWD, p, b, n, n); }},
  };
  for (const auto& [name, call] : forms) {
    char buffer[PATH_MAX];
    const ssize_t length = call(kIbDevice, buffer, sizeof buffer);
    ASSERT_GT(length, 0) << name;
    EXPECT_EQ(std::string(buffer, static_cast<size_t>(length)), kTarget) << name;
    char small[6] = {'x', 'x', 'x', 'x', 'x', 'x'};
    EXPECT_EQ(call(kIbDevice, small, 5), 5) << name;
    EXPECT_EQ(std::string(small, 6), "../..x") << name;
    errno = 0;
    EXPECT_EQ(call(kFirmwareFile, buffer, sizeof buffer), -1) << name;
    EXPECT_EQ(errno, EINVAL) << name;
    EXPECT_GT(call("/proc/self/exe", buffer, sizeof buffer), 0) << name;
  }
}

// Guards against canonical names that lead nowhere: programs take the PCI address from them.
TEST(Realpath, EveryFormAgrees) {
  char buffer[PATH_MAX];
  EXPECT_STREQ(realpath(kIbDevice, buffer), kCanonical);
  EXPECT_STREQ(__realpath_chk(kIbDevice, buffer, sizeof buffer), kCanonical);
  char* made = realpath("/sys/class/infiniband/mlx5_0/device", nullptr);
  EXPECT_STREQ(made, "/sys/devices/pcibe1f:00/be1f:00:00.0");
  free(made);
  made = canonicalize_file_name("/sys/bus/pci/devices/be1f:00:00.0/infiniband_verbs/uverbs0");
  EXPECT_STREQ(made, "/sys/devices/pcibe1f:00/be1f:00:00.0/infiniband_verbs/uverbs0");
  free(made);
  EXPECT_STREQ(realpath("/proc/../proc", buffer), "/proc");
  errno = 0;
  EXPECT_EQ(realpath("/sys/class/infiniband/none", buffer), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

// Guards against `ls -l` complaining of files that it has just listed.
TEST(Attributes, NodesHaveNone) {
  char buffer[16];
  errno = 0;
  EXPECT_EQ(getxattr(kFirmwareFile, "user.x", buffer, sizeof buffer), -1);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_EQ(lgetxattr(kIbDevice, "user.x", buffer, sizeof buffer), -1);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_EQ(listxattr(kFirmwareFile, buffer, sizeof buffer), 0);
  EXPECT_EQ(llistxattr(kIbDevice, buffer, sizeof buffer), 0);
}

}  // namespace
}  // namespace belfry::softnic::test
