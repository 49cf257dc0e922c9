#pragma once
/// \file
/// An open /dev/infiniband/uverbsN: the kernel's side of one ibv_context.

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "softnic/firmware/nic.hpp"
#include "softnic/result.hpp"

namespace belfry::softnic {

/// Every call takes what a system call takes and returns what it returns, with -errno for failure.
/// Any number of threads may call; nothing throws and no input crashes.
class UverbsFile {
 public:
  /// \return ENODEV if the NIC has no such device, EMFILE or ENOMEM from the system
  static Result<std::shared_ptr<UverbsFile>> open(Nic& nic, unsigned device);

  /// Destroys whatever objects are still open, dependents first.
  ~UverbsFile();
  UverbsFile(const UverbsFile&) = delete;
  UverbsFile& operator=(const UverbsFile&) = delete;

  /// The descriptor to hand to the application: a sparse memfd whose pages at the offsets that
  /// commands return are the UAR pages, so that a plain mmap of it maps them.
  int fd() const;

  ssize_t write(const void* command, std::size_t bytes);
  int ioctl(unsigned long request, void* argument);

  struct Impl;

 private:
  explicit UverbsFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::softnic
