#include "softnic/preload/directory_stream.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>

namespace belfry::softnic::preload {
namespace {

/// All streams lie here, so that one is told from the C library's by its address.
constexpr unsigned kStreams = 1024;
constinit DirectoryStream streams[kStreams]{};

unsigned char type_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::outer:
    case NodeKind::directory:
      return DT_DIR;
    case NodeKind::file:
    case NodeKind::unreadable:
      return DT_REG;
    case NodeKind::link:
      return DT_LNK;
    case NodeKind::device:
      return DT_CHR;
  }
  return DT_UNKNOWN;
}

void fill(struct dirent& entry, const char* name, std::size_t length, const Node& node, long position) {
  entry.d_ino = node.inode;
  entry.d_off = position + 1;
  entry.d_type = type_of(node);
  const std::size_t copied = length < sizeof entry.d_name ? length : sizeof entry.d_name - 1;
  std::memcpy(entry.d_name, name, copied);
  entry.d_name[copied] = '\0';
  const std::size_t bytes = offsetof(struct dirent, d_name) + copied + 1;
  entry.d_reclen = static_cast<unsigned short>((bytes + 7) / 8 * 8);
}

}  // namespace

DirectoryStream* stream_of(DIR* directory) {
  auto* candidate = reinterpret_cast<DirectoryStream*>(directory);
  const std::less<const DirectoryStream*> before;
  if (before(candidate, streams) || !before(candidate, streams + kStreams)) return nullptr;
  return candidate;
}

DIR* handle_of(DirectoryStream& stream) { return reinterpret_cast<DIR*>(&stream); }

DirectoryStream* take_stream(const Node& node, int fd) {
  for (DirectoryStream& stream : streams) {
    if (stream.used.load(std::memory_order_relaxed)) continue;
    if (stream.used.exchange(true, std::memory_order_acquire)) continue;
    stream.fd = fd;
    stream.node = &node;
    stream.position = 0;
    return &stream;
  }
  errno = EMFILE;
  return nullptr;
}

void give_back(DirectoryStream& stream) {
  stream.node = nullptr;
  stream.used.store(false, std::memory_order_release);
}

bool entry_at(const Node& node, long position, struct dirent& entry) {
  if (position == 0) {
    fill(entry, ".", 1, node, position);
    return true;
  }
  if (position == 1) {
    fill(entry, "..", 2, *node.parent, position);
    return true;
  }
  const auto index = static_cast<std::size_t>(position - 2);
  if (position < 0 || index >= node.children.size()) return false;
  const Node& child = *node.children[index];
  fill(entry, child.name.data(), child.name.size(), child, position);
  return true;
}

}  // namespace belfry::softnic::preload
