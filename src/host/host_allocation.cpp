#include "host/host_allocation.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>

#include "belfry/host/errors.hpp"

namespace belfry::host {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) & ~(step - 1); }

}  // namespace

std::shared_ptr<void> allocate_host(std::size_t bytes, std::size_t alignment, bool huge_pages) {
  if (bytes == 0) throw Error(ErrorKind::bad_argument, "an allocation of 0 bytes", "Ask for at least 1");
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    throw Error(ErrorKind::bad_argument, "an alignment of " + std::to_string(alignment) + " bytes",
                "It must be a power of two");
  }
  const std::size_t align = std::max({alignment, kPage, huge_pages ? kHugePage : kPage});
  const std::size_t most = std::numeric_limits<std::size_t>::max() / 2;
  if (bytes > most || align > most) {
    throw Error(ErrorKind::system, "cannot map " + format_bytes(bytes), "Ask for less", ENOMEM);
  }

  // Whole pages from the kernel: nothing else shares them, and they are zero. mmap aligns to pages only,
  // so the mapping is as much longer as the alignment may shift its start.
  const std::size_t mapped = round_up(bytes, align) + (align > kPage ? align : 0);
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    throw Error(ErrorKind::system, "cannot map " + format_bytes(mapped), "Ask for less, or free memory",
                errno);
  }
  void* start = reinterpret_cast<void*>(round_up(reinterpret_cast<std::uintptr_t>(base), align));
  if (huge_pages) madvise(start, round_up(bytes, align), MADV_HUGEPAGE);
  return {start, [base, mapped](void*) { munmap(base, mapped); }};
}

}  // namespace belfry::host
