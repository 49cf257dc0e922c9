/// \file
/// stat() in all its forms, those of C libraries before 2.33 included. On the 64-bit machines that this
/// library is for, struct stat and struct stat64 are the same.

#include <fcntl.h>
#include <sys/stat.h>

#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

namespace belfry::softnic::preload {
namespace {

static_assert(sizeof(struct stat) == sizeof(struct stat64));

[[gnu::noinline]] int stat_ours(int fd, struct stat* out) {
  const FileReference file = look_up(fd);
  if (!file) return real().fstat(fd, out);
  fill_stat(*file->node, *out);
  return 0;
}

int stat_descriptor(int fd, struct stat* out) {
  if (is_foreign(fd)) [[likely]] {
    return real().fstat(fd, out);
  }
  return stat_ours(fd, out);
}

/// Whether an "at" call means the descriptor itself.
bool means_descriptor(const char* path, int flags) {
  return (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || *path == '\0');
}

int stat_at(int directory, const char* path, struct stat* out, int flags) {
  if (means_descriptor(path, flags) && !is_foreign(directory)) return stat_ours(directory, out);
  return dispatch(
      directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0,
      [&](const Node& node) {
        fill_stat(node, *out);
        return 0;
      },
      [&](int where, const char* real_path) { return real().fstatat(where, real_path, out, flags); });
}

[[gnu::noinline]] int statx_ours(int fd, const char* path, int flags, unsigned mask, struct statx* out) {
  const FileReference file = look_up(fd);
  if (!file) return real().statx(fd, path, flags, mask, out);
  fill_statx(*file->node, *out);
  return 0;
}

int statx_at(int directory, const char* path, int flags, unsigned mask, struct statx* out) {
  if (means_descriptor(path, flags) && !is_foreign(directory)) {
    return statx_ours(directory, path, flags, mask, out);
  }
  return dispatch(
      directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0,
      [&](const Node& node) {
        fill_statx(node, *out);
        return 0;
      },
      [&](int where, const char* real_path) { return real().statx(where, real_path, flags, mask, out); });
}

}  // namespace
}  // namespace belfry::softnic::preload

using namespace belfry::softnic::preload;

BELFRY_HOOK(int, hook_stat, "stat", const char* path, struct stat* out) {
  return stat_at(AT_FDCWD, path, out, 0);
}
BELFRY_HOOK(int, hook_stat64, "stat64", const char* path, struct stat* out) {
  return stat_at(AT_FDCWD, path, out, 0);
}
BELFRY_HOOK(int, hook_lstat, "lstat", const char* path, struct stat* out) {
  return stat_at(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
BELFRY_HOOK(int, hook_lstat64, "lstat64", const char* path, struct stat* out) {
  return stat_at(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
BELFRY_HOOK(int, hook_fstat, "fstat", int fd, struct stat* out) { return stat_descriptor(fd, out); }
BELFRY_HOOK(int, hook_fstat64, "fstat64", int fd, struct stat* out) { return stat_descriptor(fd, out); }
BELFRY_HOOK(int, hook_fstatat, "fstatat", int directory, const char* path, struct stat* out, int flags) {
  return stat_at(directory, path, out, flags);
}
BELFRY_HOOK(int, hook_fstatat64, "fstatat64", int directory, const char* path, struct stat* out, int flags) {
  return stat_at(directory, path, out, flags);
}

// The forms that programs built against an older C library call; their first argument is the version
// of struct stat, of which there is one.
BELFRY_HOOK(int, hook_xstat, "__xstat", int, const char* path, struct stat* out) {
  return stat_at(AT_FDCWD, path, out, 0);
}
BELFRY_HOOK(int, hook_xstat64, "__xstat64", int, const char* path, struct stat* out) {
  return stat_at(AT_FDCWD, path, out, 0);
}
BELFRY_HOOK(int, hook_lxstat, "__lxstat", int, const char* path, struct stat* out) {
  return stat_at(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
BELFRY_HOOK(int, hook_lxstat64, "__lxstat64", int, const char* path, struct stat* out) {
  return stat_at(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
BELFRY_HOOK(int, hook_fxstat, "__fxstat", int, int fd, struct stat* out) { return stat_descriptor(fd, out); }
BELFRY_HOOK(int, hook_fxstat64, "__fxstat64", int, int fd, struct stat* out) {
  return stat_descriptor(fd, out);
}
BELFRY_HOOK(int, hook_fxstatat, "__fxstatat", int, int directory, const char* path, struct stat* out,
            int flags) {
  return stat_at(directory, path, out, flags);
}
BELFRY_HOOK(int, hook_fxstatat64, "__fxstatat64", int, int directory, const char* path, struct stat* out,
            int flags) {
  return stat_at(directory, path, out, flags);
}

BELFRY_HOOK(int, hook_statx, "statx", int directory, const char* path, int flags, unsigned mask,
            struct statx* out) {
  return statx_at(directory, path, flags, mask, out);
}
