/// \file
/// Reading directories. readdir() of a directory of ours never fails, so errno stays as it is.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "softnic/preload/directory_stream.hpp"
#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

namespace belfry::softnic::preload {
namespace {

DIR* stream_on(const Node& node, int fd) {
  DirectoryStream* stream = take_stream(node, fd);
  return stream != nullptr ? handle_of(*stream) : nullptr;
}

DIR* open_directory(const Node& node) {
  const int fd = open_node(node, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  DIR* directory = stream_on(node, fd);
  if (directory == nullptr) {
    forget(fd);
    real().close(fd);
    errno = EMFILE;
  }
  return directory;
}

[[gnu::noinline]] DIR* adopt_directory(int fd) {
  const FileReference file = look_up(fd);
  if (!file) return full_real().fdopendir(fd);
  if (!file->node->is_directory()) return failed<DIR*>(ENOTDIR);
  return stream_on(*file->node, fd);
}

int close_directory(DirectoryStream& stream) {
  const int fd = stream.fd;
  give_back(stream);
  forget(fd);
  return real().close(fd);
}

struct dirent* next_entry(DirectoryStream& stream) {
  if (!entry_at(*stream.node, stream.position, stream.entry)) return nullptr;
  ++stream.position;
  return &stream.entry;
}

struct dirent* read_directory(DIR* directory) {
  if (DirectoryStream* stream = stream_of(directory)) return next_entry(*stream);
  return full_real().readdir(directory);
}

int read_directory_into(DIR* directory, struct dirent* entry, struct dirent** result) {
  DirectoryStream* stream = stream_of(directory);
  if (stream == nullptr) return full_real().readdir_r(directory, entry, result);
  const struct dirent* next = next_entry(*stream);
  *result = next != nullptr ? entry : nullptr;
  if (next != nullptr) std::memcpy(entry, next, next->d_reclen);
  return 0;
}

void free_list(struct dirent** list, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::free(list[i]);
  std::free(list);
}

/// The C library frees what it finds with free(), entry by entry; so that is how the list is made.
int scan_node(const Node& node, struct dirent*** result, DirentFilter filter, DirentOrder order) {
  if (!node.is_directory()) return failed<int>(ENOTDIR);
  auto** list = static_cast<struct dirent**>(std::calloc(node.children.size() + 2, sizeof(struct dirent*)));
  if (list == nullptr) return failed<int>(ENOMEM);
  std::size_t count = 0;
  struct dirent entry {};
  for (long position = 0; entry_at(node, position, entry); ++position) {
    if (filter != nullptr && filter(&entry) == 0) continue;
    auto* copy = static_cast<struct dirent*>(std::malloc(sizeof entry));
    if (copy == nullptr) {
      free_list(list, count);
      return failed<int>(ENOMEM);
    }
    *copy = entry;
    list[count++] = copy;
  }
  if (order != nullptr) {
    std::qsort(list, count, sizeof *list, reinterpret_cast<int (*)(const void*, const void*)>(order));
  }
  *result = list;
  return static_cast<int>(count);
}

int scan_at(int directory, const char* path, struct dirent*** result, DirentFilter filter,
            DirentOrder order) {
  return dispatch(
      directory, path, true, [&](const Node& node) { return scan_node(node, result, filter, order); },
      [&](int where, const char* real_path) {
        return full_real().scandirat(where, real_path, result, filter, order);
      });
}

}  // namespace
}  // namespace belfry::softnic::preload

using namespace belfry::softnic::preload;

BELFRY_HOOK(DIR*, hook_opendir, "opendir", const char* path) {
  return dispatch(
      AT_FDCWD, path, true, [](const Node& node) { return open_directory(node); },
      [](int, const char* real_path) { return full_real().opendir(real_path); });
}

BELFRY_HOOK(DIR*, hook_fdopendir, "fdopendir", int fd) {
  if (is_foreign(fd)) return full_real().fdopendir(fd);
  return adopt_directory(fd);
}

BELFRY_HOOK(struct dirent*, hook_readdir, "readdir", DIR* directory) { return read_directory(directory); }
BELFRY_HOOK(struct dirent*, hook_readdir64, "readdir64", DIR* directory) { return read_directory(directory); }

BELFRY_HOOK(int, hook_readdir_r, "readdir_r", DIR* directory, struct dirent* entry, struct dirent** result) {
  return read_directory_into(directory, entry, result);
}
BELFRY_HOOK(int, hook_readdir64_r, "readdir64_r", DIR* directory, struct dirent* entry,
            struct dirent** result) {
  return read_directory_into(directory, entry, result);
}

BELFRY_HOOK(int, hook_closedir, "closedir", DIR* directory) {
  if (DirectoryStream* stream = stream_of(directory)) return close_directory(*stream);
  return full_real().closedir(directory);
}

BELFRY_HOOK(int, hook_dirfd, "dirfd", DIR* directory) {
  if (const DirectoryStream* stream = stream_of(directory)) return stream->fd;
  return full_real().dirfd(directory);
}

BELFRY_HOOK(void, hook_rewinddir, "rewinddir", DIR* directory) {
  if (DirectoryStream* stream = stream_of(directory)) {
    stream->position = 0;
  } else {
    full_real().rewinddir(directory);
  }
}

BELFRY_HOOK(long, hook_telldir, "telldir", DIR* directory) {
  if (const DirectoryStream* stream = stream_of(directory)) return stream->position;
  return full_real().telldir(directory);
}

BELFRY_HOOK(void, hook_seekdir, "seekdir", DIR* directory, long position) {
  if (DirectoryStream* stream = stream_of(directory)) {
    stream->position = position;
  } else {
    full_real().seekdir(directory, position);
  }
}

BELFRY_HOOK(int, hook_scandir, "scandir", const char* path, struct dirent*** result, DirentFilter filter,
            DirentOrder order) {
  return scan_at(AT_FDCWD, path, result, filter, order);
}
BELFRY_HOOK(int, hook_scandir64, "scandir64", const char* path, struct dirent*** result, DirentFilter filter,
            DirentOrder order) {
  return scan_at(AT_FDCWD, path, result, filter, order);
}
BELFRY_HOOK(int, hook_scandirat, "scandirat", int directory, const char* path, struct dirent*** result,
            DirentFilter filter, DirentOrder order) {
  return scan_at(directory, path, result, filter, order);
}
BELFRY_HOOK(int, hook_scandirat64, "scandirat64", int directory, const char* path, struct dirent*** result,
            DirentFilter filter, DirentOrder order) {
  return scan_at(directory, path, result, filter, order);
}
