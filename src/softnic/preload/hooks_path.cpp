/// \file
/// What is asked of a path without opening it: access rights, a link's target, the canonical name.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

/// The C library's answer to a buffer that its caller knows to be too small.
extern "C" [[noreturn]] void __chk_fail(void);

namespace belfry::softnic::preload {
namespace {

/// The tree is read-only, and only directories can be searched.
int access_node(const Node& node, int mode) {
  const bool writing = (mode & W_OK) != 0 && node.kind != NodeKind::device;
  const bool executing = (mode & X_OK) != 0 && !node.is_directory();
  return writing || executing ? failed<int>(EACCES) : 0;
}

int access_at(int directory, const char* path, int mode, int flags) {
  return dispatch(
      directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0,
      [&](const Node& node) { return access_node(node, mode); },
      [&](int where, const char* real_path) { return real().faccessat(where, real_path, mode, flags); });
}

ssize_t read_link(const Node& node, char* buffer, size_t bytes) {
  if (node.kind != NodeKind::link) return failed<ssize_t>(EINVAL);
  const size_t length = std::min(bytes, node.text.size());
  std::memcpy(buffer, node.text.data(), length);
  return static_cast<ssize_t>(length);
}

ssize_t read_link_at(int directory, const char* path, char* buffer, size_t bytes) {
  return dispatch(
      directory, path, false, [&](const Node& node) { return read_link(node, buffer, bytes); },
      [&](int where, const char* real_path) { return real().readlinkat(where, real_path, buffer, bytes); });
}

char* canonical_path(const Node& node, char* buffer) {
  char* target = buffer != nullptr ? buffer : static_cast<char*>(std::malloc(PATH_MAX));
  if (target == nullptr) return nullptr;
  path_of(node, target, PATH_MAX);  // the tree's own paths are all far shorter
  return target;
}

char* real_path_of(const char* path, char* buffer) {
  return dispatch(
      AT_FDCWD, path, true, [&](const Node& node) { return canonical_path(node, buffer); },
      [&](int, const char* real_path) { return full_real().realpath(real_path, buffer); });
}

}  // namespace
}  // namespace belfry::softnic::preload

using namespace belfry::softnic::preload;

BELFRY_HOOK(int, hook_access, "access", const char* path, int mode) {
  return access_at(AT_FDCWD, path, mode, 0);
}
BELFRY_HOOK(int, hook_faccessat, "faccessat", int directory, const char* path, int mode, int flags) {
  return access_at(directory, path, mode, flags);
}
BELFRY_HOOK(int, hook_euidaccess, "euidaccess", const char* path, int mode) {
  return access_at(AT_FDCWD, path, mode, AT_EACCESS);
}
BELFRY_HOOK(int, hook_eaccess, "eaccess", const char* path, int mode) {
  return access_at(AT_FDCWD, path, mode, AT_EACCESS);
}

BELFRY_HOOK(ssize_t, hook_readlink, "readlink", const char* path, char* buffer, size_t bytes) {
  return read_link_at(AT_FDCWD, path, buffer, bytes);
}
BELFRY_HOOK(ssize_t, hook_readlinkat, "readlinkat", int directory, const char* path, char* buffer,
            size_t bytes) {
  return read_link_at(directory, path, buffer, bytes);
}
BELFRY_HOOK(ssize_t, hook_readlink_chk, "__readlink_chk", const char* path, char* buffer, size_t bytes,
            size_t capacity) {
  if (bytes > capacity) __chk_fail();
  return read_link_at(AT_FDCWD, path, buffer, bytes);
}
BELFRY_HOOK(ssize_t, hook_readlinkat_chk, "__readlinkat_chk", int directory, const char* path, char* buffer,
            size_t bytes, size_t capacity) {
  if (bytes > capacity) __chk_fail();
  return read_link_at(directory, path, buffer, bytes);
}

BELFRY_HOOK(char*, hook_realpath, "realpath", const char* path, char* buffer) {
  return real_path_of(path, buffer);
}
BELFRY_HOOK(char*, hook_realpath_chk, "__realpath_chk", const char* path, char* buffer, size_t capacity) {
  if (capacity < PATH_MAX) __chk_fail();
  return real_path_of(path, buffer);
}
BELFRY_HOOK(char*, hook_canonicalize, "canonicalize_file_name", const char* path) {
  return real_path_of(path, nullptr);
}
