#include "softnic/preload/vfs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace belfry::softnic::preload {
namespace {

constexpr unsigned kMostLinks = 40;  // as Linux: more is ELOOP

/// The part of a path that is still to be walked, in a buffer that links are put in front of.
class Rest {
 public:
  bool assign(const char* path) {
    const std::size_t length = std::strlen(path);
    if (length >= sizeof buffer_) return false;
    begin_ = sizeof buffer_ - 1 - length;
    std::memcpy(buffer_ + begin_, path, length + 1);
    return true;
  }

  /// The next component, without slashes around it; empty at the end.
  std::string_view next() {
    skip_slashes();
    const char* start = buffer_ + begin_;
    const std::size_t length = std::strcspn(start, "/");
    begin_ += length;
    followed_by_slash_ = buffer_[begin_] == '/';
    return {start, length};
  }

  bool at_end() {
    skip_slashes();
    return buffer_[begin_] == '\0';
  }

  bool followed_by_slash() const { return followed_by_slash_; }
  const char* text() const { return buffer_ + begin_; }

  bool put_in_front(std::string_view target) {
    if (target.size() > begin_) return false;
    begin_ -= target.size();
    std::memcpy(buffer_ + begin_, target.data(), target.size());
    return true;
  }

 private:
  void skip_slashes() {
    while (buffer_[begin_] == '/') ++begin_;
  }

  char buffer_[PATH_MAX];
  std::size_t begin_ = 0;
  bool followed_by_slash_ = false;
};

void fail(Resolved& result, int error) {
  result.to = Resolved::To::error;
  result.error = error;
}

/// The walk has left the tree at `directory`. If it was ever inside, the real file system gets a path
/// without our nodes in it; if not, the path as it was given.
void leave(Resolved& result, const Node& directory, std::string_view name, const char* rest,
           bool was_inside) {
  if (!was_inside) {
    result.to = Resolved::To::outside;
    return;
  }
  std::size_t length = path_of(directory, result.path, sizeof result.path);
  const std::size_t tail = std::strlen(rest);
  if (length == 0 || length + 1 + name.size() + tail >= sizeof result.path) {
    fail(result, ENAMETOOLONG);
    return;
  }
  if (!name.empty()) {
    if (result.path[length - 1] != '/') result.path[length++] = '/';
    std::memcpy(result.path + length, name.data(), name.size());
    length += name.size();
  }
  std::memcpy(result.path + length, rest, tail + 1);
  result.to = Resolved::To::redirected;
}

mode_t mode_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::outer:
    case NodeKind::directory:
      return S_IFDIR | 0755;
    case NodeKind::file:
    case NodeKind::unreadable:
      return S_IFREG | 0444;
    case NodeKind::link:
      return S_IFLNK | 0777;
    case NodeKind::device:
      return S_IFCHR | 0666;
  }
  return 0;
}

off_t size_of(const Node& node) {
  if (node.kind == NodeKind::file || node.kind == NodeKind::unreadable) return 4096;  // as sysfs says
  return node.kind == NodeKind::link ? static_cast<off_t>(node.text.size()) : 0;
}

/// A device number that no mounted file system has: anonymous ones count up from 1.
constexpr unsigned kFileSystemMinor = 0xbe1f0;

}  // namespace

dev_t uverbs_device_number(unsigned index) { return makedev(kUverbsMajor, kUverbsFirstMinor + index); }

const Node* Node::child(std::string_view child_name) const {
  for (const auto& candidate : children) {
    if (candidate->name == child_name) return candidate.get();
  }
  return nullptr;
}

Tree::Tree() : root_(std::make_unique<Node>()) {
  root_->parent = root_.get();
  root_->inode = next_inode_++;
}

Node& Tree::add_child(Node& parent, std::string_view name, NodeKind kind) {
  auto node = std::make_unique<Node>();
  node->name = name;
  node->kind = kind;
  node->inode = next_inode_++;
  node->parent = &parent;
  parent.children.push_back(std::move(node));
  return *parent.children.back();
}

Node& Tree::add(std::string_view path, unsigned real, NodeKind kind, std::string text) {
  Node* current = root_.get();
  for (unsigned depth = 0; !path.empty(); ++depth) {
    path.remove_prefix(1);  // the slash
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
    Node* next = const_cast<Node*>(current->child(name));
    if (next == nullptr) {
      const NodeKind between = depth < real ? NodeKind::outer : NodeKind::directory;
      next = &add_child(*current, name, path.empty() ? kind : between);
    }
    current = next;
  }
  current->text = std::move(text);
  return *current;
}

void resolve(const Tree& tree, const Node* from, const char* path, bool follow_last, Resolved& result) {
  Rest rest;
  if (!rest.assign(path)) return fail(result, ENAMETOOLONG);
  if (*path == '\0') return fail(result, ENOENT);
  const Node* current = *path == '/' ? &tree.root() : from;
  bool inside = current != nullptr && current->kind != NodeKind::outer;
  unsigned links = 0;
  while (current != nullptr && !rest.at_end()) {
    const std::string_view name = rest.next();
    if (!current->is_directory()) return fail(result, ENOTDIR);
    if (name == ".") continue;
    if (name == "..") {
      current = current->parent;
      continue;
    }
    const Node* next = current->child(name);
    if (next == nullptr) {
      if (current->kind == NodeKind::outer) return leave(result, *current, name, rest.text(), inside);
      return fail(result, ENOENT);
    }
    inside = inside || next->kind != NodeKind::outer;
    if (next->kind != NodeKind::link || (!follow_last && !rest.followed_by_slash())) {
      if (rest.followed_by_slash() && !next->is_directory()) return fail(result, ENOTDIR);
      current = next;
      continue;
    }
    if (++links > kMostLinks) return fail(result, ELOOP);
    if (!rest.put_in_front(next->text)) return fail(result, ENAMETOOLONG);
    if (next->text.starts_with('/')) current = &tree.root();
  }
  if (current == nullptr) {
    result.to = Resolved::To::outside;
  } else if (current->kind == NodeKind::outer) {
    leave(result, *current, {}, "", inside);
  } else {
    result.to = Resolved::To::node;
    result.node = current;
  }
}

std::size_t path_of(const Node& node, char* buffer, std::size_t bytes) {
  if (node.parent == &node) {
    if (bytes < 2) return 0;
    std::memcpy(buffer, "/", 2);
    return 1;
  }
  std::size_t length = path_of(*node.parent, buffer, bytes);
  if (length == 0) return 0;
  if (length == 1) length = 0;  // the root's own slash
  if (length + 1 + node.name.size() >= bytes) return 0;
  buffer[length++] = '/';
  std::memcpy(buffer + length, node.name.c_str(), node.name.size() + 1);
  return length + node.name.size();
}

void fill_stat(const Node& node, struct stat& out) {
  std::memset(&out, 0, sizeof out);
  out.st_dev = makedev(0, kFileSystemMinor);
  out.st_ino = node.inode;
  out.st_mode = mode_of(node);
  out.st_nlink = node.is_directory() ? 2 : 1;
  out.st_size = size_of(node);
  out.st_blksize = 4096;
  if (node.kind == NodeKind::device) out.st_rdev = uverbs_device_number(node.device);
}

void fill_statx(const Node& node, struct statx& out) {
  struct stat plain;
  fill_stat(node, plain);
  std::memset(&out, 0, sizeof out);
  out.stx_mask = STATX_BASIC_STATS;
  out.stx_blksize = 4096;
  out.stx_nlink = static_cast<std::uint32_t>(plain.st_nlink);
  out.stx_mode = static_cast<std::uint16_t>(plain.st_mode);
  out.stx_ino = plain.st_ino;
  out.stx_size = static_cast<std::uint64_t>(plain.st_size);
  out.stx_rdev_major = major(plain.st_rdev);
  out.stx_rdev_minor = minor(plain.st_rdev);
  out.stx_dev_major = major(plain.st_dev);
  out.stx_dev_minor = minor(plain.st_dev);
}

}  // namespace belfry::softnic::preload
