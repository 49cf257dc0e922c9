/// \file
/// What is done with a descriptor: the commands of uverbs, and everything that copies or closes one.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <climits>
#include <cstdarg>
#include <cstdio>

#include "softnic/preload/hook.hpp"
#include "softnic/preload/real.hpp"

namespace belfry::softnic::preload {
namespace {

/// Runs a command on a device's descriptor.
/// \param otherwise errno for a descriptor of ours that is no device
template <class Command>
auto run_command(const OpenFile& file, int otherwise, Command command) -> decltype(command(**file.uverbs)) {
  using Value = decltype(command(**file.uverbs));
  if (file.uverbs == nullptr) return failed<Value>(otherwise);
  // After a fork the device belongs to the parent, as after a disassociation.
  if (file.generation != process_generation() || !owns_its_memory()) return failed<Value>(ENODEV);
  const Value value = command(**file.uverbs);
  return value < 0 ? failed<Value>(static_cast<int>(-value)) : value;
}

[[gnu::noinline]] ssize_t write_ours(int fd, const void* data, size_t bytes) {
  const FileReference file = look_up(fd);
  if (!file) return real().write(fd, data, bytes);
  return run_command(*file, EBADF, [&](UverbsFile& uverbs) { return uverbs.write(data, bytes); });
}

[[gnu::noinline]] int ioctl_ours(int fd, unsigned long request, void* argument) {
  const FileReference file = look_up(fd);
  if (!file) return real().ioctl(fd, request, argument);
  return run_command(*file, ENOTTY, [&](UverbsFile& uverbs) { return uverbs.ioctl(request, argument); });
}

/// \param copy what a call that copies descriptors has returned
int shared(int fd, int copy) {
  if (copy >= 0) share(fd, copy);
  return copy;
}

int close_range_of(unsigned first, unsigned last, int flags) {
  // With CLOSE_RANGE_UNSHARE other threads keep the descriptors, with CLOSE_RANGE_CLOEXEC everyone does.
  if (flags == 0 && first <= last) forget_range(first, last);
  return real().close_range(first, last, flags);
}

}  // namespace
}  // namespace belfry::softnic::preload

using namespace belfry::softnic::preload;

BELFRY_HOOK(ssize_t, hook_write, "write", int fd, const void* data, size_t bytes) {
  if (is_foreign(fd)) [[likely]] {
    return real().write(fd, data, bytes);
  }
  return write_ours(fd, data, bytes);
}

BELFRY_HOOK(int, hook_ioctl, "ioctl", int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (is_foreign(fd)) [[likely]] {
    return real().ioctl(fd, request, argument);
  }
  return ioctl_ours(fd, request, argument);
}

BELFRY_HOOK(int, hook_close, "close", int fd) {
  forget(fd);
  return real().close(fd);
}

BELFRY_HOOK(int, hook_fclose, "fclose", FILE* stream) {
  const int saved = errno;
  if (stream != nullptr) forget(fileno(stream));
  errno = saved;
  return full_real().fclose(stream);
}

BELFRY_HOOK(int, hook_close_range, "close_range", unsigned first, unsigned last, int flags) {
  return close_range_of(first, last, flags);
}

BELFRY_HOOK(void, hook_closefrom, "closefrom", int first) {
  const unsigned from = first < 0 ? 0 : static_cast<unsigned>(first);
  if (close_range_of(from, UINT_MAX, 0) == 0) return;
  const long limit = sysconf(_SC_OPEN_MAX);
  for (unsigned fd = from; static_cast<long>(fd) < limit; ++fd) hook_close(static_cast<int>(fd));
}

BELFRY_HOOK(int, hook_dup, "dup", int fd) { return shared(fd, real().dup(fd)); }

BELFRY_HOOK(int, hook_dup2, "dup2", int fd, int copy) { return shared(fd, real().dup2(fd, copy)); }

BELFRY_HOOK(int, hook_dup3, "dup3", int fd, int copy, int flags) {
  return shared(fd, real().dup3(fd, copy, flags));
}

BELFRY_HOOK(int, hook_fcntl, "fcntl", int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const int result = real().fcntl(fd, command, argument);
  const bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  return copies ? shared(fd, result) : result;
}

BELFRY_HOOK(int, hook_fcntl64, "fcntl64", int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return hook_fcntl(fd, command, argument);
}
