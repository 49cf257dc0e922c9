#pragma once
/// \file
/// Zero-filled host memory in whole pages.

#include <cstddef>
#include <memory>

namespace belfry::host {

/// \param alignment bytes, a power of two
/// Throws Error: bad_argument (0 bytes, alignment no power of two), system (out of memory).
std::shared_ptr<void> allocate_host(std::size_t bytes, std::size_t alignment, bool huge_pages = false);

}  // namespace belfry::host
