/// \file
/// Extended attributes, which `ls -l` asks for: nodes of ours have none.

#include <fcntl.h>
#include <sys/types.h>
#include <sys/xattr.h>

#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

namespace belfry::softnic::preload {
namespace {

ssize_t get_attribute(const char* path, const char* name, void* value, size_t bytes, bool follow) {
  return dispatch(
      AT_FDCWD, path, follow, [](const Node&) { return failed<ssize_t>(ENODATA); },
      [&](int, const char* real_path) {
        return (follow ? full_real().getxattr : full_real().lgetxattr)(real_path, name, value, bytes);
      });
}

ssize_t list_attributes(const char* path, char* list, size_t bytes, bool follow) {
  return dispatch(
      AT_FDCWD, path, follow, [](const Node&) { return ssize_t{0}; },
      [&](int, const char* real_path) {
        return (follow ? full_real().listxattr : full_real().llistxattr)(real_path, list, bytes);
      });
}

}  // namespace
}  // namespace belfry::softnic::preload

using namespace belfry::softnic::preload;

BELFRY_HOOK(ssize_t, hook_getxattr, "getxattr", const char* path, const char* name, void* value,
            size_t bytes) {
  return get_attribute(path, name, value, bytes, true);
}
BELFRY_HOOK(ssize_t, hook_lgetxattr, "lgetxattr", const char* path, const char* name, void* value,
            size_t bytes) {
  return get_attribute(path, name, value, bytes, false);
}
BELFRY_HOOK(ssize_t, hook_listxattr, "listxattr", const char* path, char* list, size_t bytes) {
  return list_attributes(path, list, bytes, true);
}
BELFRY_HOOK(ssize_t, hook_llistxattr, "llistxattr", const char* path, char* list, size_t bytes) {
  return list_attributes(path, list, bytes, false);
}
