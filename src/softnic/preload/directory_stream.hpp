#pragma once
/// \file
/// What opendir() of a directory of ours returns in the place of the C library's DIR.

#include <dirent.h>

#include <atomic>

#include "softnic/preload/vfs.hpp"

namespace belfry::softnic::preload {

struct DirectoryStream {
  std::atomic<bool> used{false};
  int fd = -1;
  const Node* node = nullptr;
  long position = 0;  ///< 0 ".", 1 "..", then the children
  struct dirent entry {};
};

/// \return the stream, or null for a DIR of the C library. Costs two comparisons.
DirectoryStream* stream_of(DIR* directory);
DIR* handle_of(DirectoryStream& stream);

/// \return null and EMFILE where too many are open
DirectoryStream* take_stream(const Node& node, int fd);
void give_back(DirectoryStream& stream);

/// Writes the entry at `position`. \return false behind the last
bool entry_at(const Node& node, long position, struct dirent& entry);

}  // namespace belfry::softnic::preload
