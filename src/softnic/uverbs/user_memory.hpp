#pragma once
/// \file
/// Memory of the application, which the kernel's side must treat as unknown: any pointer may be
/// garbage, and no access may fault. Addresses are integers here, so that nobody dereferences one.

#include <cstddef>
#include <cstdint>

namespace belfry::softnic {

/// An address that the application gave.
using UserAddress = std::uint64_t;

/// Copies from or to the application's memory. \return 0, or EFAULT (part may have been copied)
int copy_in(void* to, UserAddress from, std::size_t bytes);
int copy_out(UserAddress to, const void* from, std::size_t bytes);

/// Writes zeros. \return 0 or EFAULT
int clear_out(UserAddress to, std::size_t bytes);

/// \return 0 if every byte is zero, EOPNOTSUPP if one is not, EFAULT if one cannot be read
int check_cleared(UserAddress from, std::size_t bytes);

/// What pinning pages for a device asks of a range and does to it, as Linux' ib_umem_get: it must be
/// mapped from end to end, and writable if the device is to write; its pages become resident.
/// \return 0; EFAULT: not mapped so, or behind the end of a file; EINVAL: empty, or the addresses
/// overflow
int check_pinnable(UserAddress start, std::uint64_t bytes, bool writable);

/// Pages locked for devices by this process, against RLIMIT_MEMLOCK. Movable; returns its pages when
/// it dies.
class LockedPages {
 public:
  LockedPages() = default;
  LockedPages(LockedPages&& other) noexcept : pages_(other.pages_) { other.pages_ = 0; }
  LockedPages& operator=(LockedPages&& other) noexcept;
  ~LockedPages() { release(); }

  /// Accounts the pages that a range touches.
  /// \param enforce whether the limit holds (it does not for a process with CAP_IPC_LOCK)
  /// \return 0, or ENOMEM: more than RLIMIT_MEMLOCK
  int lock(UserAddress start, std::uint64_t bytes, bool enforce);
  void release();

 private:
  std::uint64_t pages_ = 0;
};

}  // namespace belfry::softnic
