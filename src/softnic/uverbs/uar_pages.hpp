#pragma once
/// \file
/// The pages of doorbell registers (UARs) of one file: a sparse memfd that the application maps at
/// the offsets it is told, and that is mapped here as well for the NIC.

#include <cstddef>
#include <cstdint>
#include <set>

#include "softnic/result.hpp"

namespace belfry::softnic {

class UarPages {
 public:
  /// Offsets of allocated UARs start behind those that carry a command of the old interface
  /// (page << 8 commands, enum mlx5_ib_mmap_cmd), as in the mlx5 driver.
  static constexpr std::uint64_t kFirstAllocatedPage = 9u << 8;

  struct Page {
    std::uint64_t offset = 0;  ///< in the file, bytes
    void* address = nullptr;   ///< here
  };

  UarPages() = default;
  ~UarPages();
  UarPages(const UarPages&) = delete;
  UarPages& operator=(const UarPages&) = delete;

  /// \return 0, or the errno of the system: EMFILE, ENOMEM
  int open();
  int descriptor() const { return descriptor_; }

  /// A page at the lowest free offset. \return ENOMEM: no memory, ENOSPC: none free
  Result<Page> allocate();
  /// The page at a fixed place of the old interface.
  Result<Page> at(std::uint64_t page_index);
  /// Unmaps it, and forgets what it held. The application's own mapping stays what it is.
  void free(const Page& page);

 private:
  int grow(std::uint64_t pages);

  int descriptor_ = -1;
  std::uint64_t file_pages_ = 0;
  std::uint64_t next_page_ = kFirstAllocatedPage;
  std::set<std::uint64_t> free_pages_;
};

}  // namespace belfry::softnic
