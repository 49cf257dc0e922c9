#pragma once
/// \file
/// What a PE tells the others of its windows, and whether all fit together. Pure.

#include <cstdint>
#include <span>
#include <vector>

#include "belfry/host/bootstrap.hpp"
#include "belfry/host/memory.hpp"

namespace belfry::host {

struct WindowEntry {
  WindowDescription description;
  Access access = Access::none;
};

Blob encode_windows(std::span<const WindowEntry> windows);

/// \param peer for the message
/// Throws Error (bad_argument) for anything that encode_windows() would not have made.
std::vector<WindowEntry> decode_windows(std::size_t peer, const Blob& blob);

/// Throws Error (bad_argument) that names the rank, the window and what differs.
/// \param lists by rank
void check_windows_agree(const std::vector<std::vector<WindowEntry>>& lists);

}  // namespace belfry::host
