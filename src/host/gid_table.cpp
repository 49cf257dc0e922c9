// Reading a port's GID table. What it holds is chosen from in gid.cpp.

#include <net/if.h>

#include <algorithm>
#include <cstring>

#include "belfry/host/gid.hpp"
#include "host/sysfs.hpp"

namespace belfry::host {

namespace {

GidType type_of(std::uint32_t verbs_type) {
  switch (verbs_type) {
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::roce_v1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::roce_v2;
    default:
      return GidType::infiniband;
  }
}

std::string netdev_of(const ibv_context* context, std::uint8_t port, int index, std::uint32_t if_index) {
  char name[IF_NAMESIZE] = {};
  if (if_index != 0 && if_indextoname(if_index, name) != nullptr) return name;
  // The interface can lie in another network namespace; sysfs still names it.
  const auto file = std::filesystem::path(context->device->ibdev_path) / "ports" / std::to_string(port) /
                    "gid_attrs" / "ndevs" / std::to_string(index);
  return read_sysfs_line(file).value_or("");
}

/// A GID without its type or interface, from drivers that answer nothing more.
bool read_plain(ibv_context* context, std::uint8_t port, LinkLayer link, GidEntry& entry) {
  ibv_gid gid{};
  if (ibv_query_gid(context, port, entry.index, &gid) != 0) return false;
  std::memcpy(entry.gid.data(), gid.raw, entry.gid.size());
  if (link == LinkLayer::infiniband) {
    entry.type = GidType::infiniband;
    return true;
  }
  const auto file = std::filesystem::path(context->device->ibdev_path) / "ports" / std::to_string(port) /
                    "gid_attrs" / "types" / std::to_string(entry.index);
  const std::string type = read_sysfs_line(file).value_or("");
  entry.type = type == "RoCE v2" ? GidType::roce_v2 : GidType::roce_v1;
  return true;
}

}  // namespace

std::vector<GidEntry> read_gid_table(ibv_context* context, std::uint8_t port, int length, LinkLayer link) {
  std::vector<GidEntry> table;
  table.reserve(static_cast<std::size_t>(std::max(length, 0)));
  for (int index = 0; index < length; ++index) {
    GidEntry entry;
    entry.index = index;
    ibv_gid_entry raw{};
    if (ibv_query_gid_ex(context, port, static_cast<std::uint32_t>(index), &raw, 0) == 0) {
      std::memcpy(entry.gid.data(), raw.gid.raw, entry.gid.size());
      entry.type = type_of(raw.gid_type);
      if (link == LinkLayer::ethernet) entry.netdev = netdev_of(context, port, index, raw.ndev_ifindex);
    } else {
      entry.readable = read_plain(context, port, link, entry);
      if (entry.readable && link == LinkLayer::ethernet) entry.netdev = netdev_of(context, port, index, 0);
    }
    table.push_back(std::move(entry));
  }
  return table;
}

}  // namespace belfry::host
