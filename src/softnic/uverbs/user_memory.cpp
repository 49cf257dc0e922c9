#include "softnic/uverbs/user_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "softnic/page_bytes.hpp"

namespace belfry::softnic {
namespace {

/// Lets the kernel do the access, so that a bad address is an error code. System calls are made
/// directly: the C functions of these names may be interposed by our own preload library, and TSan must not
/// see half of a descriptor's life.
class Pipe {
 public:
  Pipe() {
    if (::syscall(SYS_pipe2, ends_, O_CLOEXEC | O_NONBLOCK) != 0) ends_[0] = ends_[1] = -1;
  }
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) ::syscall(SYS_close, end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// \return bytes moved, at most a page; 0 or less: none could be
  long move(std::uint64_t to, std::uint64_t from, std::size_t bytes) const {
    const std::size_t some = std::min<std::size_t>(bytes, 4096);
    const long written = ::syscall(SYS_write, ends_[1], from, some);
    if (written <= 0) return written;
    return ::syscall(SYS_read, ends_[0], to, static_cast<std::size_t>(written));
  }

 private:
  int ends_[2];
};

int copy_through_pipe(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const Pipe pipe;
  while (bytes > 0) {
    const long moved = pipe.move(to, from, bytes);
    if (moved <= 0) return EFAULT;
    to += static_cast<std::uint64_t>(moved);
    from += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::size_t>(moved);
  }
  return 0;
}

std::uint64_t integer_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
void* pointer_of(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// One line of /proc/self/maps.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
};

/// Reads /proc/self/maps mapping by mapping, without the C library's files: they allocate, and maps
/// would change under the reading.
class MapsReader {
 public:
  MapsReader()
      : file_(static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0))) {
  }
  ~MapsReader() {
    if (file_ >= 0) ::syscall(SYS_close, file_);
  }
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;

  bool usable() const { return file_ >= 0; }

  bool next(Mapping& mapping) {
    if (!hex_until('-', mapping.start) || !hex_until(' ', mapping.end)) return false;
    mapping.readable = take() == 'r';
    mapping.writable = take() == 'w';
    for (int c = take(); c != '\n' && c >= 0; c = take()) {
    }
    return true;
  }

 private:
  int take() {
    if (next_ == end_) {
      const long got = ::syscall(SYS_read, file_, buffer_.data(), buffer_.size());
      if (got <= 0) return -1;
      next_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    return static_cast<unsigned char>(buffer_[next_++]);
  }

  bool hex_until(int stop, std::uint64_t& value) {
    value = 0;
    for (int c = take(); c != stop; c = take()) {
      if (c >= '0' && c <= '9') {
        value = value << 4 | static_cast<std::uint64_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value << 4 | static_cast<std::uint64_t>(c - 'a' + 10);
      } else {
        return false;
      }
    }
    return true;
  }

  int file_;
  std::array<char, 8192> buffer_{};
  std::size_t next_ = 0;
  std::size_t end_ = 0;
};

/// Where /proc is not mounted: touches one byte a page through the kernel.
int probe_pages(UserAddress start, std::uint64_t end, bool writable) {
  for (std::uint64_t at = start; at < end; at = (at & ~(page_bytes() - 1)) + page_bytes()) {
    char byte = 0;
    if (copy_in(&byte, at, 1) != 0) return EFAULT;
    if (writable && copy_out(at, &byte, 1) != 0) return EFAULT;
  }
  return 0;
}

/// Makes the pages resident, which finds those behind the end of a mapped file: touching them would be
/// a SIGBUS. \return 0 or EFAULT
int populate(UserAddress start, std::uint64_t end, bool writable) {
  const std::uint64_t first = start & ~(page_bytes() - 1);
  const std::uint64_t last = (end + page_bytes() - 1) & ~(page_bytes() - 1);
  if (::madvise(pointer_of(first), last - first, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
    return 0;
  // EINVAL: a kernel before 5.14, or memory of a device, which is there already.
  return errno == EINVAL ? 0 : EFAULT;
}

std::atomic<std::uint64_t>& locked_pages_of_process() {
  static std::atomic<std::uint64_t> pages{0};
  return pages;
}

}  // namespace

int copy_in(void* to, UserAddress from, std::size_t bytes) {
  if (bytes == 0) return 0;
  const iovec local{to, bytes};
  const iovec remote{pointer_of(from), bytes};
  const ssize_t copied = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
  if (copied == static_cast<ssize_t>(bytes)) return 0;
  if (copied < 0 && (errno == EPERM || errno == ENOSYS))
    return copy_through_pipe(integer_of(to), from, bytes);
  return EFAULT;
}

int copy_out(UserAddress to, const void* from, std::size_t bytes) {
  if (bytes == 0) return 0;
  const iovec local{const_cast<void*>(from), bytes};
  const iovec remote{pointer_of(to), bytes};
  const ssize_t copied = ::process_vm_writev(::getpid(), &local, 1, &remote, 1, 0);
  if (copied == static_cast<ssize_t>(bytes)) return 0;
  if (copied < 0 && (errno == EPERM || errno == ENOSYS))
    return copy_through_pipe(to, integer_of(from), bytes);
  return EFAULT;
}

int clear_out(UserAddress to, std::size_t bytes) {
  static constexpr std::array<char, 512> kZeros{};
  while (bytes > 0) {
    const std::size_t some = std::min(bytes, kZeros.size());
    if (copy_out(to, kZeros.data(), some) != 0) return EFAULT;
    to += some;
    bytes -= some;
  }
  return 0;
}

int check_cleared(UserAddress from, std::size_t bytes) {
  std::array<char, 512> chunk;
  while (bytes > 0) {
    const std::size_t some = std::min(bytes, chunk.size());
    if (copy_in(chunk.data(), from, some) != 0) return EFAULT;
    if (std::any_of(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(some),
                    [](char c) { return c != 0; })) {
      return EOPNOTSUPP;
    }
    from += some;
    bytes -= some;
  }
  return 0;
}

int check_pinnable(UserAddress start, std::uint64_t bytes, bool writable) {
  const std::uint64_t end = start + bytes;
  if (bytes == 0 || end < start || end > UINT64_MAX - page_bytes()) return EINVAL;
  MapsReader maps;
  if (!maps.usable()) return probe_pages(start, end, writable);
  // Mappings come in order of address: walk on while they join up.
  std::uint64_t at = start;
  Mapping mapping;
  while (at < end && maps.next(mapping)) {
    if (mapping.end <= at) continue;
    if (mapping.start > at) return EFAULT;
    if (!mapping.readable || (writable && !mapping.writable)) return EFAULT;
    at = mapping.end;
  }
  return at >= end ? populate(start, end, writable) : EFAULT;
}

LockedPages& LockedPages::operator=(LockedPages&& other) noexcept {
  if (this != &other) {
    release();
    pages_ = other.pages_;
    other.pages_ = 0;
  }
  return *this;
}

int LockedPages::lock(UserAddress start, std::uint64_t bytes, bool enforce) {
  release();
  if (bytes == 0) return 0;
  const std::uint64_t page = page_bytes();
  const std::uint64_t pages = (start + bytes - 1) / page - start / page + 1;
  const std::uint64_t before = locked_pages_of_process().fetch_add(pages);
  pages_ = pages;
  if (!enforce) return 0;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  if (before + pages <= limit.rlim_cur / page) return 0;
  release();
  return ENOMEM;
}

void LockedPages::release() {
  if (pages_ != 0) locked_pages_of_process().fetch_sub(pages_);
  pages_ = 0;
}

}  // namespace belfry::softnic
