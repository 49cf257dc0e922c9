#pragma once
/// \file
/// The few facts about devices and network interfaces that only sysfs tells.

#include <filesystem>
#include <optional>
#include <string>

namespace belfry::host {

/// A one-line file without its line's end; nothing if it cannot be read.
std::optional<std::string> read_sysfs_line(const std::filesystem::path& file);

/// MTU of a network interface, bytes; nothing if there is no such interface.
std::optional<unsigned> netdev_mtu(const std::string& netdev);

}  // namespace belfry::host
