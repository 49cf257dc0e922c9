#pragma once
/// \file
/// A small tree of files that exist in this process only: what RDMA programs look for under /sys and
/// /dev. Nothing of it is on a disk, so no death can leave any of it behind.
///
/// The tree never changes once it is built; any number of threads may walk it.

#include <sys/types.h>

#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct stat;
struct statx;

namespace belfry::softnic::preload {

enum class NodeKind : std::uint8_t {
  outer,  ///< a directory of the real file system that has nodes of ours somewhere below it
  directory,
  file,
  unreadable,  ///< a file that opens, but reading it gives EINVAL, as attributes of empty GIDs do
  link,
  device,  ///< /dev/infiniband/uverbsN
};

struct Node {
  std::string name;
  NodeKind kind = NodeKind::outer;
  std::string text;     ///< a file's content, a link's target
  unsigned device = 0;  ///< a device's index
  ino_t inode = 0;
  Node* parent = nullptr;  ///< of the root: itself
  std::vector<std::unique_ptr<Node>> children;

  const Node* child(std::string_view child_name) const;
  bool is_directory() const { return kind == NodeKind::directory || kind == NodeKind::outer; }
};

/// uverbsN is character device 231:192+N, as the kernel has it (Linux, IB_UVERBS_BASE_MINOR).
inline constexpr unsigned kUverbsMajor = 231;
inline constexpr unsigned kUverbsFirstMinor = 192;
dev_t uverbs_device_number(unsigned index);

class Tree {
 public:
  Tree();
  const Node& root() const { return *root_; }

  /// Adds a node and whatever directories lead to it. The first `real` components of `path` belong to
  /// the real file system.
  Node& add(std::string_view path, unsigned real, NodeKind kind, std::string text = {});

 private:
  Node& add_child(Node& parent, std::string_view name, NodeKind kind);

  std::unique_ptr<Node> root_;
  ino_t next_inode_ = 1;
};

/// Where a path leads.
struct Resolved {
  enum class To : std::uint8_t {
    outside,     ///< not ours: the real file system answers for the path as it was given
    node,        ///< `node`
    redirected,  ///< out of the tree again: the real file system answers for `path`
    error,       ///< `error`, a positive errno
  };
  To to = To::outside;
  const Node* node = nullptr;
  int error = 0;
  char path[PATH_MAX];
};

/// Walks a path through the tree; neither allocates nor touches the real file system.
/// \param from where a relative path starts, or null: then the path must be absolute
/// \param follow_last whether a link at the path's end is followed
void resolve(const Tree& tree, const Node* from, const char* path, bool follow_last, Resolved& result);

/// Writes the node's absolute path. \return its length, or 0 where it does not fit
std::size_t path_of(const Node& node, char* buffer, std::size_t bytes);

void fill_stat(const Node& node, struct stat& out);
void fill_statx(const Node& node, struct statx& out);

}  // namespace belfry::softnic::preload
