#pragma once
/// \file
/// Which entry of a port's GID table to use.

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belfry::host {

using Gid = std::array<std::uint8_t, 16>;

enum class LinkLayer : std::uint8_t { infiniband = 0, ethernet = 1 };
enum class GidType : std::uint8_t { infiniband = 0, roce_v1 = 1, roce_v2 = 2 };

std::string_view to_string(LinkLayer link);
std::string_view to_string(GidType type);

/// What kind of address a GID holds.
enum class GidScope : std::uint8_t {
  empty,       ///< all zero
  link_local,  ///< fe80::/10
  ipv4,        ///< ::ffff:a.b.c.d
  global,      ///< any other
};
GidScope scope_of(const Gid& gid);

/// A GID in text: an IPv4-mapped one as its IPv4 address, others as IPv6.
std::string format_gid(const Gid& gid);

struct GidEntry {
  int index = 0;
  Gid gid{};
  GidType type = GidType::infiniband;
  bool readable = true;  ///< false: the table has the slot, and reading it failed
  std::string netdev;    ///< the network interface behind it; empty where unknown
};

struct GidChoice {
  GidEntry entry;
  std::string reason;  ///< one line: the index, the GID, its type and why
};

/// Chooses an entry. Ethernet: RoCE v2 with an IPv4 address, then v2 with a global IPv6 one, then v2
/// link-local, then v1; the first of equals. InfiniBand: index 0, since routing goes by LID.
/// \param requested an index that overrides the choice
/// Throws Error: bad_argument if the requested entry is empty, unreadable or not there; unsupported if
/// no entry can be used.
GidChoice choose_gid(LinkLayer link, std::span<const GidEntry> table, std::optional<int> requested = {});

/// Reads a port's table; a slot that cannot be read is there with `readable` false.
/// \param length gid_tbl_len of the port's attributes
std::vector<GidEntry> read_gid_table(ibv_context* context, std::uint8_t port, int length, LinkLayer link);

}  // namespace belfry::host
