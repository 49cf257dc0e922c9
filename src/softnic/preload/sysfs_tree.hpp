#pragma once
/// \file
/// The files under /sys and /dev that describe the software NIC's devices, as the kernel lays them out
/// (Linux, Documentation/ABI/stable/sysfs-class-infiniband).

#include "softnic/config.hpp"
#include "softnic/preload/vfs.hpp"

namespace belfry::softnic::preload {

/// \return null where memory is short
std::unique_ptr<Tree> build_tree(const Config& config);

/// A cheap look at a path before any walk: false means that no path of the tree can be meant.
/// \param path absolute, or relative to a directory of the real file system
bool may_be_ours(const char* path);

}  // namespace belfry::softnic::preload
