#pragma once
/// \file
/// Registered memory, and how peers learn of it.

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "belfry/host/context.hpp"
#include "belfry/host/queue_memory.hpp"

namespace belfry::host {

/// Access rights of a region; local reads are always allowed. Values of enum ibv_access_flags.
enum class Access : std::uint32_t {
  none = 0,
  local_write = IBV_ACCESS_LOCAL_WRITE,
  remote_write = IBV_ACCESS_REMOTE_WRITE,
  remote_read = IBV_ACCESS_REMOTE_READ,
  remote_atomic = IBV_ACCESS_REMOTE_ATOMIC,
  /// Lets PCIe reorder writes to the region. Never for memory that signals.
  relaxed_ordering = IBV_ACCESS_RELAXED_ORDERING,
};
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr bool has(Access set, Access bit) {
  return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(bit)) != 0;
}
inline constexpr Access kAllAccess =
    Access::local_write | Access::remote_write | Access::remote_read | Access::remote_atomic;

/// A region as a peer needs to know it.
struct WindowDescription {
  std::uint64_t address = 0;  ///< the owner's virtual address
  std::uint64_t length = 0;   ///< bytes
  std::uint32_t rkey = 0;
  bool operator==(const WindowDescription&) const = default;

  static constexpr std::size_t kEncodedBytes = 24;
  using Encoded = std::array<std::byte, kEncodedBytes>;
  Encoded encode() const;
  /// Throws Error (bad_argument) for a wrong length or a foreign format.
  static WindowDescription decode(std::span<const std::byte> bytes);

  /// Whether `bytes` from `offset` on lie inside.
  constexpr bool contains(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= length && bytes <= length - offset;
  }
};

struct AllocationOptions {
  std::size_t alignment = 4096;  ///< bytes, a power of two
  bool huge_pages = false;       ///< ask for transparent huge pages (a wish, never an error)
};

/// A handle of a memory region: copies share it, and with the last it is deregistered and what it
/// allocated is freed. It keeps its domain alive.
class Memory {
 public:
  /// Zero-filled memory of its own. Throws Error: bad_argument (0 bytes, alignment), locked_memory (with
  /// the limit and how to raise it), system.
  static Memory allocate(const ProtectionDomain& domain, std::size_t bytes, Access access = kAllAccess,
                         const AllocationOptions& options = {});
  /// The same from a provider, which gives whole pages.
  static Memory allocate_from(const ProtectionDomain& domain, QueueMemory& provider, std::size_t bytes,
                              Access access = kAllAccess);
  /// Registers memory of the caller, who keeps it mapped for as long. Throws as allocate().
  static Memory adopt(const ProtectionDomain& domain, void* address, std::size_t bytes,
                      Access access = kAllAccess);

  std::byte* data() const { return static_cast<std::byte*>(address_); }
  std::size_t bytes() const { return bytes_; }
  std::span<std::byte> span() const { return {data(), bytes_}; }
  std::uint32_t lkey() const { return region_->lkey; }
  std::uint32_t rkey() const { return region_->rkey; }
  bool owns() const { return owns_; }  ///< it is not a caller's
  WindowDescription window() const;

 private:
  Memory(const ProtectionDomain& domain, std::shared_ptr<void> storage, void* address, std::size_t bytes,
         Access access);

  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  bool owns_ = false;
  std::shared_ptr<ibv_mr> region_;  ///< its deleter holds storage and domain
};

}  // namespace belfry::host
