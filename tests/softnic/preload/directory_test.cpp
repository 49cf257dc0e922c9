#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support.hpp"

namespace belfry::softnic::test {
namespace {

constexpr char kPort[] = "/sys/class/infiniband/mlx5_0/ports/1";

std::vector<std::string> names(DIR* directory) {
  std::vector<std::string> result;
  while (const dirent* entry = readdir(directory)) result.emplace_back(entry->d_name);
  return result;
}

// Guards against entries that are lost, doubled or of the wrong type, and against errno at the end.
TEST(Directory, ListsEverythingOnce) {
  DIR* directory = opendir(kPort);
  ASSERT_NE(directory, nullptr);
  errno = 0;
  std::set<std::string> seen;
  while (const dirent64* entry = readdir64(directory)) {
    EXPECT_TRUE(seen.insert(entry->d_name).second) << entry->d_name;
    const std::string name = entry->d_name;
    const bool is_directory = name == "gids" || name == "." || name == "..";
    if (is_directory || name == "state") {
      EXPECT_EQ(entry->d_type, is_directory ? DT_DIR : DT_REG) << name;
    }
    struct stat status {};
    ASSERT_EQ(fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW), 0) << name;
    EXPECT_EQ(status.st_ino, entry->d_ino) << name;
  }
  EXPECT_EQ(errno, 0);
  for (const char* name : {".", "..", "state", "rate", "lid", "gids", "gid_attrs", "pkeys", "counters"}) {
    EXPECT_EQ(seen.count(name), 1u) << name;
  }
  EXPECT_EQ(closedir(directory), 0);
}

// Guards against positions that do not lead back to the same entry.
TEST(Directory, SeeksAndRewinds) {
  DIR* directory = opendir(kPort);
  ASSERT_NE(directory, nullptr);
  for (int i = 0; i < 4; ++i) readdir(directory);
  const long position = telldir(directory);
  const std::vector<std::string> rest = names(directory);
  seekdir(directory, position);
  EXPECT_EQ(names(directory), rest);
  rewinddir(directory);
  const std::vector<std::string> all = names(directory);
  EXPECT_EQ(all.size(), rest.size() + 4);
  seekdir(directory, -5);
  EXPECT_EQ(readdir(directory), nullptr);
  closedir(directory);
}

// Guards against the form with the caller's buffer.
TEST(Directory, ReadsIntoACallersEntry) {
  DIR* directory = opendir("/dev/infiniband");
  ASSERT_NE(directory, nullptr);
  dirent entry{};
  dirent* result = nullptr;
  std::set<std::string> seen;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  while (readdir_r(directory, &entry, &result) == 0 && result != nullptr) seen.insert(entry.d_name);
#pragma GCC diagnostic pop
  EXPECT_EQ(seen, (std::set<std::string>{".", "..", "uverbs0"}));
  closedir(directory);
}

// Guards against a descriptor that a directory stream adopts, and that it must close.
TEST(Directory, AdoptsADescriptor) {
  const int fd = open("/sys/class/infiniband", O_RDONLY | O_DIRECTORY);
  ASSERT_GE(fd, 0);
  DIR* directory = fdopendir(fd);
  ASSERT_NE(directory, nullptr);
  EXPECT_EQ(dirfd(directory), fd);
  EXPECT_EQ(names(directory), (std::vector<std::string>{".", "..", "mlx5_0"}));
  EXPECT_EQ(closedir(directory), 0);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  const int file = open(kFirmwareFile, O_RDONLY);
  errno = 0;
  EXPECT_EQ(fdopendir(file), nullptr);
  EXPECT_EQ(errno, ENOTDIR);
  close(file);
}

int only_digits(const dirent* entry) { return entry->d_name[0] >= '0' && entry->d_name[0] <= '9'; }

// Guards against scandir(), which the C library runs on its own functions.
TEST(Directory, Scans) {
  dirent** list = nullptr;
  const int count = scandir("/sys/class/infiniband/mlx5_0/ports/1/pkeys", &list, only_digits, versionsort);
  ASSERT_EQ(count, 128);
  EXPECT_STREQ(list[0]->d_name, "0");
  EXPECT_STREQ(list[127]->d_name, "127");
  for (int i = 0; i < count; ++i) free(list[i]);
  free(list);
  errno = 0;
  EXPECT_EQ(scandir(kFirmwareFile, &list, nullptr, nullptr), -1);
  EXPECT_EQ(errno, ENOTDIR);
  const int real = scandir("/proc/self", &list, nullptr, alphasort);
  ASSERT_GT(real, 10);
  for (int i = 0; i < real; ++i) free(list[i]);
  free(list);
}

// Guards against C++'s own walk, which goes by descriptors.
TEST(Directory, FilesystemWalks) {
  unsigned files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator("/sys/class/infiniband/mlx5_0/ports")) {
    if (entry.is_regular_file()) ++files;
  }
  EXPECT_GT(files, 150u);
  EXPECT_TRUE(std::filesystem::is_symlink(kIbDevice));
  EXPECT_TRUE(std::filesystem::is_character_file(kDevice));
}

// Guards against real directories, which must pass unharmed.
TEST(Directory, RealDirectoriesAreTheCLibrarys) {
  DIR* directory = opendir("/proc/self/task");
  ASSERT_NE(directory, nullptr);
  EXPECT_GE(names(directory).size(), 3u);
  rewinddir(directory);
  EXPECT_GE(names(directory).size(), 3u);
  EXPECT_GE(dirfd(directory), 0);
  EXPECT_EQ(closedir(directory), 0);
  EXPECT_EQ(opendir("/sys/class/none"), nullptr);
  EXPECT_EQ(opendir(kFirmwareFile), nullptr);
  EXPECT_EQ(errno, ENOTDIR);
}

// Guards against streams that are not given back.
TEST(Directory, CanBeOpenedManyTimes) {
  for (int i = 0; i < 5000; ++i) {
    DIR* directory = opendir("/sys/class/infiniband_verbs");
    ASSERT_NE(directory, nullptr) << i;
    closedir(directory);
  }
}

}  // namespace
}  // namespace belfry::softnic::test
