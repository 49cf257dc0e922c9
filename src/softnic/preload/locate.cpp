#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

namespace belfry::softnic::preload {
namespace {

/// The absolute path of a real directory. \return false where it has none that fits
bool path_of_real_directory(int directory, char* buffer, std::size_t bytes) {
  if (directory == AT_FDCWD) return syscall(SYS_getcwd, buffer, bytes) > 0 && buffer[0] == '/';
  char link[32];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  const ssize_t length = real().readlinkat(AT_FDCWD, link, buffer, bytes - 1);
  if (length <= 0) return false;
  buffer[length] = '\0';
  return buffer[0] == '/';
}

void locate_below_real(const Tree& tree, int directory, const char* path, bool follow_last,
                       Resolved& result) {
  char absolute[PATH_MAX];
  if (!path_of_real_directory(directory, absolute, sizeof absolute)) return;
  const std::size_t length = std::strlen(absolute);
  const std::size_t more = std::strlen(path);
  if (length + 1 + more >= sizeof absolute) return;
  absolute[length] = '/';
  std::memcpy(absolute + length + 1, path, more + 1);
  if (may_be_ours(absolute)) resolve(tree, nullptr, absolute, follow_last, result);
}

}  // namespace

void locate(int directory, const char* path, bool follow_last, Resolved& result) {
  result.to = Resolved::To::outside;
  const Tree* tree = process_tree();
  if (tree == nullptr || *path == '\0') return;
  if (*path == '/') return resolve(*tree, nullptr, path, follow_last, result);
  if (const FileReference start = look_up(directory)) {
    return resolve(*tree, start->node, path, follow_last, result);
  }
  if (may_be_ours(path)) locate_below_real(*tree, directory, path, follow_last, result);
}

}  // namespace belfry::softnic::preload
