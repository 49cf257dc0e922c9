/// \file
/// open() in all its forms, and fopen().

#include <fcntl.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

namespace belfry::softnic::preload {
namespace {

bool takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

int open_at(int directory, const char* path, int flags, mode_t mode) {
  return dispatch(
      directory, path, (flags & O_NOFOLLOW) == 0, [&](const Node& node) { return open_node(node, flags); },
      [&](int where, const char* real_path) { return real().openat(where, real_path, flags, mode); });
}

FILE* open_stream(const Node& node, const char* mode) {
  if (mode[0] != 'r' || std::strchr(mode, '+') != nullptr) return failed<FILE*>(EACCES);
  if (node.is_directory()) return failed<FILE*>(EISDIR);
  if (node.kind == NodeKind::device) return failed<FILE*>(ENXIO);  // commands do not pass through a buffer
  const int fd = open_node(node, std::strchr(mode, 'e') != nullptr ? O_RDONLY | O_CLOEXEC : O_RDONLY);
  if (fd < 0) return nullptr;
  FILE* stream = fdopen(fd, "r");
  if (stream == nullptr) {
    forget(fd);
    real().close(fd);
  }
  return stream;
}

}  // namespace
}  // namespace belfry::softnic::preload

using namespace belfry::softnic::preload;

/// Fetches the mode that follows `flags`, where there is one.
#define BELFRY_FETCH_MODE(flags)                                         \
  va_list arguments;                                                     \
  va_start(arguments, flags);                                            \
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0; \
  va_end(arguments)

BELFRY_HOOK(int, hook_open, "open", const char* path, int flags, ...) {
  BELFRY_FETCH_MODE(flags);
  return open_at(AT_FDCWD, path, flags, mode);
}

BELFRY_HOOK(int, hook_open64, "open64", const char* path, int flags, ...) {
  BELFRY_FETCH_MODE(flags);
  return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

BELFRY_HOOK(int, hook_openat, "openat", int directory, const char* path, int flags, ...) {
  BELFRY_FETCH_MODE(flags);
  return open_at(directory, path, flags, mode);
}

BELFRY_HOOK(int, hook_openat64, "openat64", int directory, const char* path, int flags, ...) {
  BELFRY_FETCH_MODE(flags);
  return open_at(directory, path, flags | O_LARGEFILE, mode);
}

BELFRY_HOOK(int, hook_open_2, "__open_2", const char* path, int flags) {
  return open_at(AT_FDCWD, path, flags, 0);
}

BELFRY_HOOK(int, hook_open64_2, "__open64_2", const char* path, int flags) {
  return open_at(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

BELFRY_HOOK(int, hook_openat_2, "__openat_2", int directory, const char* path, int flags) {
  return open_at(directory, path, flags, 0);
}

BELFRY_HOOK(int, hook_openat64_2, "__openat64_2", int directory, const char* path, int flags) {
  return open_at(directory, path, flags | O_LARGEFILE, 0);
}

BELFRY_HOOK(int, hook_creat, "creat", const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

BELFRY_HOOK(int, hook_creat64, "creat64", const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC | O_LARGEFILE, mode);
}

BELFRY_HOOK(FILE*, hook_fopen, "fopen", const char* path, const char* mode) {
  return dispatch(
      AT_FDCWD, path, true, [&](const Node& node) { return open_stream(node, mode); },
      [&](int, const char* real_path) { return full_real().fopen(real_path, mode); });
}

BELFRY_HOOK(FILE*, hook_fopen64, "fopen64", const char* path, const char* mode) {
  return hook_fopen(path, mode);
}
