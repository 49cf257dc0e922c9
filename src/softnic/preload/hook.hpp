#pragma once
/// \file
/// How a function is put in front of the C library's, and how one that takes a path finds out whether
/// the path is ours.

#include <fcntl.h>

#include <cerrno>
#include <type_traits>

#include "softnic/preload/descriptors.hpp"
#include "softnic/preload/process.hpp"
#include "softnic/preload/sysfs_tree.hpp"
#include "softnic/preload/vfs.hpp"

/// Defines a function of ours that other libraries see as `theirs`. The name is given to the assembler
/// alone, so that the C library's own declaration (exception specification, fortify wrapper) is not in
/// the way. What the library exports is listed in exports.map.
#define BELFRY_HOOK(Value, ours, theirs, ...)                                                      \
  extern "C" Value ours(__VA_ARGS__) __asm__(theirs) __attribute__((visibility("default"), used)); \
  extern "C" Value ours(__VA_ARGS__)

namespace belfry::softnic::preload {

/// Whether a walk through the tree is worth while.
inline bool concerns_us(int directory, const char* path) {
  if (path == nullptr) return false;
  const bool from_real = *path == '/' || is_foreign(directory);
  return (!from_real || may_be_ours(path)) && process_tree() != nullptr;
}

/// resolve() for a path as the "at" functions take it.
void locate(int directory, const char* path, bool follow_last, Resolved& result);

/// -1 or null, as the C library says that a call has failed.
template <class R>
R failed(int error) {
  errno = error;
  if constexpr (std::is_pointer_v<R>) {
    return nullptr;
  } else {
    return static_cast<R>(-1);
  }
}

/// Kept out of line: its buffers must not burden the small stack of a thread whose path is not ours.
template <class OnNode, class OnReal>
[[gnu::noinline]] auto dispatch_ours(int directory, const char* path, bool follow_last, OnNode on_node,
                                     OnReal on_real) {
  using Value = decltype(on_real(directory, path));
  const int saved = errno;
  Resolved where;
  locate(directory, path, follow_last, where);
  errno = saved;
  switch (where.to) {
    case Resolved::To::node:
      return static_cast<Value>(on_node(*where.node));
    case Resolved::To::error:
      return failed<Value>(where.error);
    case Resolved::To::redirected:
      return on_real(AT_FDCWD, where.path);
    case Resolved::To::outside:
      break;
  }
  return on_real(directory, path);
}

/// Calls on_node(node) where the path leads to a node of ours, else on_real(directory, path).
template <class OnNode, class OnReal>
auto dispatch(int directory, const char* path, bool follow_last, OnNode on_node, OnReal on_real) {
  if (!concerns_us(directory, path)) [[likely]] {
    return on_real(directory, path);
  }
  return dispatch_ours(directory, path, follow_last, on_node, on_real);
}

/// Opens a node as open() would. \return a descriptor, or -1 and errno
int open_node(const Node& node, int flags);

}  // namespace belfry::softnic::preload
