#include "softnic/uverbs/uar_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "softnic/page_bytes.hpp"

namespace belfry::softnic {
namespace {
constexpr std::uint64_t kPagesAtFirst = 4096;
constexpr std::uint64_t kMaxPages = 1u << 20;
}  // namespace

UarPages::~UarPages() {
  // Directly: close() may be interposed by our own preload library, which would look for this file.
  if (descriptor_ >= 0) ::syscall(SYS_close, descriptor_);
}

int UarPages::open() {
  descriptor_ = ::memfd_create("belfry-uverbs", MFD_CLOEXEC);
  if (descriptor_ < 0) return errno;
  return grow(kPagesAtFirst);
}

int UarPages::grow(std::uint64_t pages) {
  if (pages <= file_pages_) return 0;
  if (pages > kMaxPages) return ENOSPC;
  std::uint64_t size = file_pages_ == 0 ? kPagesAtFirst : file_pages_;
  while (size < pages) size *= 2;
  if (::ftruncate(descriptor_, static_cast<off_t>(size * page_bytes())) != 0) return errno;
  file_pages_ = size;
  return 0;
}

Result<UarPages::Page> UarPages::at(std::uint64_t page_index) {
  if (const int error = grow(page_index + 1); error != 0) return Errno{error};
  Page page;
  page.offset = page_index * page_bytes();
  page.address = ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                        static_cast<off_t>(page.offset));
  if (page.address == MAP_FAILED) return Errno{errno};
  return page;
}

Result<UarPages::Page> UarPages::allocate() {
  std::uint64_t index = next_page_;
  if (!free_pages_.empty()) index = *free_pages_.begin();
  Result<Page> page = at(index);
  if (!page) return page;
  if (index == next_page_) {
    ++next_page_;
  } else {
    free_pages_.erase(index);
  }
  return page;
}

void UarPages::free(const Page& page) {
  ::munmap(page.address, page_bytes());
  ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(page.offset),
              static_cast<off_t>(page_bytes()));
  const std::uint64_t index = page.offset / page_bytes();
  if (index >= kFirstAllocatedPage) free_pages_.insert(index);
}

}  // namespace belfry::softnic
