#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

namespace belfry::softnic::preload {
namespace {

/// What open() refuses before it has a descriptor. \return 0 or an errno
int refusal(const Node& node, int flags) {
  const bool writing = (flags & O_ACCMODE) != O_RDONLY;
  if ((flags & O_PATH) != 0) return (flags & O_DIRECTORY) != 0 && !node.is_directory() ? ENOTDIR : 0;
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return EEXIST;
  if (node.kind == NodeKind::link) return ELOOP;  // only met with O_NOFOLLOW
  if (node.is_directory()) return writing || (flags & O_CREAT) != 0 ? EISDIR : 0;
  if ((flags & O_DIRECTORY) != 0) return ENOTDIR;
  if (node.kind == NodeKind::device) return 0;
  return writing || (flags & O_TRUNC) != 0 ? EACCES : 0;
}

/// A sealed memfd with the node's text: a descriptor that only reads, and that needs no name anywhere.
int text_descriptor(const Node& node, int flags) {
  const unsigned close_on_exec = (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0;
  const int fd = memfd_create(node.name.c_str(), close_on_exec | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  const ssize_t size = static_cast<ssize_t>(node.text.size());
  const bool filled =
      node.kind != NodeKind::file || pwrite(fd, node.text.data(), node.text.size(), 0) == size;
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (filled && real().fcntl(fd, F_ADD_SEALS, kSeals) == 0) return fd;
  real().close(fd);
  return failed<int>(ENOMEM);
}

/// An attribute that has nothing to say. An epoll descriptor has no read operation, so read() itself
/// fails with EINVAL, the errno that the kernel's attribute gives.
int unreadable_descriptor(int flags) { return epoll_create1((flags & O_CLOEXEC) != 0 ? EPOLL_CLOEXEC : 0); }

int device_descriptor(const UverbsFile& file, int flags) {
  return real().fcntl(file.fd(), (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
}

}  // namespace

int open_node(const Node& node, int flags) {
  const int refused = refusal(node, flags);
  if (refused != 0) return failed<int>(refused);
  std::shared_ptr<UverbsFile> uverbs;
  int fd = -1;
  if (node.kind == NodeKind::device && (flags & O_PATH) == 0) {
    auto opened = open_device(node.device);
    if (!opened) return failed<int>(opened.error());
    uverbs = std::move(*opened);
    fd = device_descriptor(*uverbs, flags);
  } else if (node.kind == NodeKind::unreadable) {
    fd = unreadable_descriptor(flags);
  } else {
    fd = text_descriptor(node, flags);
  }
  if (fd < 0) return -1;
  // A child of vfork() shares the table with its parent, but not the descriptor: a plain file does
  // without an entry there.
  if (!owns_its_memory()) {
    if (node.kind == NodeKind::file || node.kind == NodeKind::unreadable) return fd;
    real().close(fd);
    return failed<int>(ENODEV);
  }
  const int error = publish(fd, node, std::move(uverbs));
  if (error == 0) return fd;
  real().close(fd);
  return failed<int>(error);
}

}  // namespace belfry::softnic::preload
