#include "belfry/host/gid.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "belfry/host/errors.hpp"

namespace belfry::host {

namespace {

bool usable(const GidEntry& entry) { return entry.readable && scope_of(entry.gid) != GidScope::empty; }

/// Smaller is better.
int preference(const GidEntry& entry) {
  if (entry.type != GidType::roce_v2) return 3;
  switch (scope_of(entry.gid)) {
    case GidScope::ipv4:
      return 0;
    case GidScope::global:
      return 1;
    default:
      return 2;
  }
}

std::string_view why(int preference_class) {
  switch (preference_class) {
    case 0:
      return "the first RoCE v2 entry with an IPv4 address";
    case 1:
      return "no RoCE v2 entry has an IPv4 address; the first one with a global IPv6 address";
    case 2:
      return "no RoCE v2 entry is routable; the first link-local one";
    default:
      return "no RoCE v2 entry; the first RoCE v1 one, which does not cross routers";
  }
}

std::string describe(const GidEntry& entry, std::string_view reason) {
  std::string text = "GID index " + std::to_string(entry.index) + " (" + format_gid(entry.gid) + ", " +
                     std::string(to_string(entry.type));
  if (!entry.netdev.empty()) text += ", " + entry.netdev;
  text += "): ";
  text += reason;
  return text;
}

GidChoice choose_requested(std::span<const GidEntry> table, int requested) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const GidEntry& entry) { return entry.index == requested; });
  if (found != table.end() && usable(*found)) return {*found, describe(*found, "requested")};
  std::string usable_indexes;
  for (const GidEntry& entry : table) {
    if (!usable(entry)) continue;
    if (!usable_indexes.empty()) usable_indexes += ", ";
    usable_indexes += std::to_string(entry.index) + " (" + format_gid(entry.gid) + ", " +
                      std::string(to_string(entry.type)) + ")";
  }
  const char* state = found == table.end() ? " is not in the port's table"
                      : found->readable    ? " is empty"
                                           : " cannot be read";
  throw Error(ErrorKind::bad_argument, "GID index " + std::to_string(requested) + state,
              "Unset BELFRY_GID_INDEX for the automatic choice, or use one of: " +
                  (usable_indexes.empty() ? std::string("(none is usable)") : usable_indexes));
}

}  // namespace

std::string_view to_string(LinkLayer link) {
  return link == LinkLayer::infiniband ? "InfiniBand" : "Ethernet";
}

std::string_view to_string(GidType type) {
  switch (type) {
    case GidType::infiniband:
      return "InfiniBand";
    case GidType::roce_v1:
      return "RoCE v1";
    case GidType::roce_v2:
      return "RoCE v2";
  }
  return "unknown";
}

GidScope scope_of(const Gid& gid) {
  if (std::all_of(gid.begin(), gid.end(), [](std::uint8_t b) { return b == 0; })) return GidScope::empty;
  if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80) return GidScope::link_local;
  const bool mapped = std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t b) { return b == 0; }) &&
                      gid[10] == 0xff && gid[11] == 0xff;
  return mapped ? GidScope::ipv4 : GidScope::global;
}

std::string format_gid(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool mapped = scope_of(gid) == GidScope::ipv4;
  if (inet_ntop(mapped ? AF_INET : AF_INET6, mapped ? gid.data() + 12 : gid.data(), text, sizeof text) ==
      nullptr) {
    return "?";
  }
  return text;
}

GidChoice choose_gid(LinkLayer link, std::span<const GidEntry> table, std::optional<int> requested) {
  if (requested) return choose_requested(table, *requested);
  if (link == LinkLayer::infiniband) {
    const auto first =
        std::find_if(table.begin(), table.end(), [](const GidEntry& entry) { return entry.index == 0; });
    if (first == table.end() || !first->readable) {
      throw Error(ErrorKind::unsupported, "the port's GID 0 cannot be read",
                  "Check that a subnet manager runs and the port is active (`ibv_devinfo`)");
    }
    return {*first, describe(*first, "InfiniBand routes by LID, and its first GID names the port")};
  }

  const GidEntry* best = nullptr;
  for (const GidEntry& entry : table) {
    if (!usable(entry)) continue;
    if (best == nullptr || preference(entry) < preference(*best)) best = &entry;
  }
  if (best == nullptr) {
    throw Error(ErrorKind::unsupported,
                "none of the port's " + std::to_string(table.size()) + " GIDs is usable",
                "Bring the RoCE network interface up and give it an address (`ip link set DEV up`; `ip addr "
                "add A.B.C.D/N dev DEV`)");
  }
  return {*best, describe(*best, why(preference(*best)))};
}

}  // namespace belfry::host
