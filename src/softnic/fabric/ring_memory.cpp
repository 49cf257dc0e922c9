#include "softnic/fabric/ring_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <new>

#include "softnic/page_bytes.hpp"

namespace belfry::softnic {
namespace {

std::size_t file_bytes(std::uint32_t ring) { return page_bytes() + ring; }

}  // namespace

bool valid_ring_bytes(std::uint32_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kRingBytesLeast && bytes <= kRingBytesMost &&
         bytes % page_bytes() == 0;
}

std::byte* RingMapping::data() const { return base_ + page_bytes(); }

void RingMapping::reset() {
  if (base_) munmap(base_, mapped_);
  base_ = nullptr;
}

Result<RingMapping> RingMapping::map(int fd, std::uint32_t bytes, Side side) {
  const std::size_t page = page_bytes();
  RingMapping ring;
  ring.mapped_ = page + 2 * std::size_t{bytes};
  ring.bytes_ = bytes;

  // One reservation first, so that the three mappings lie side by side and nobody gets between them.
  void* const base =
      mmap(nullptr, ring.mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return Errno{errno};
  ring.base_ = static_cast<std::byte*>(base);

  const int rights = side == Side::producer ? PROT_READ | PROT_WRITE : PROT_READ;
  const auto place = [&](std::size_t at, std::size_t length, int protection, std::size_t offset) {
    return mmap(ring.base_ + at, length, protection, MAP_SHARED | MAP_FIXED, fd,
                static_cast<off_t>(offset)) != MAP_FAILED;
  };
  if (!place(0, page, PROT_READ | PROT_WRITE, 0) || !place(page, bytes, rights, page) ||
      !place(page + bytes, bytes, rights, page)) {
    return Errno{errno};
  }
  return ring;
}

Result<OwnedFd> create_ring(std::uint32_t bytes) {
  if (!valid_ring_bytes(bytes)) return Errno{EINVAL};
  OwnedFd fd(memfd_create("belfry-softnic-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Errno{errno};
  if (ftruncate(fd.get(), static_cast<off_t>(file_bytes(bytes))) != 0) return Errno{errno};
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return Errno{errno};

  void* const page = mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return Errno{errno};
  (new (page) RingControl)->bytes = bytes;
  munmap(page, page_bytes());
  return fd;
}

int check_ring_fd(int fd, std::uint32_t bytes) {
  if (!valid_ring_bytes(bytes)) return EPROTO;
  const int seals = fcntl(fd, F_GET_SEALS);  // fails on everything that is not memory
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return EPROTO;
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(file_bytes(bytes))) return EPROTO;
  return 0;
}

int check_ring_control(const RingMapping& mapping) {
  const RingControl& control = mapping.control();
  const bool right =
      control.magic == kRingMagic && control.version == kRingVersion && control.bytes == mapping.bytes();
  return right ? 0 : EPROTO;
}

}  // namespace belfry::softnic
