#include "softnic/preload/real.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <mutex>

namespace belfry::softnic::preload {
namespace {

int raw_openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
}

int raw_close(int fd) { return static_cast<int>(syscall(SYS_close, fd)); }

ssize_t raw_write(int fd, const void* data, size_t bytes) { return syscall(SYS_write, fd, data, bytes); }

int raw_ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}

int raw_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}

int raw_dup(int fd) { return static_cast<int>(syscall(SYS_dup, fd)); }

int raw_dup3(int from, int to, int flags) { return static_cast<int>(syscall(SYS_dup3, from, to, flags)); }

int raw_dup2(int from, int to) {
  if (from != to) return raw_dup3(from, to, 0);
  return syscall(SYS_fcntl, from, F_GETFD) < 0 ? -1 : to;
}

int raw_close_range(unsigned first, unsigned last, int flags) {
  return static_cast<int>(syscall(SYS_close_range, first, last, flags));
}

int raw_socket(int domain, int type, int protocol) {
  return static_cast<int>(syscall(SYS_socket, domain, type, protocol));
}

int raw_fstatat(int directory, const char* path, struct stat* out, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, directory, path, out, flags));
}

int raw_fstat(int fd, struct stat* out) { return static_cast<int>(syscall(SYS_fstat, fd, out)); }

int raw_statx(int directory, const char* path, int flags, unsigned mask, struct statx* out) {
  return static_cast<int>(syscall(SYS_statx, directory, path, flags, mask, out));
}

int raw_faccessat(int directory, const char* path, int mode, int flags) {
  if (flags != 0) return static_cast<int>(syscall(SYS_faccessat2, directory, path, mode, flags));
  return static_cast<int>(syscall(SYS_faccessat, directory, path, mode));
}

ssize_t raw_readlinkat(int directory, const char* path, char* buffer, size_t bytes) {
  return syscall(SYS_readlinkat, directory, path, buffer, bytes);
}

constexpr Real system_calls() {
  Real functions{};
  functions.openat = raw_openat;
  functions.close = raw_close;
  functions.write = raw_write;
  functions.ioctl = raw_ioctl;
  functions.fcntl = raw_fcntl;
  functions.dup = raw_dup;
  functions.dup2 = raw_dup2;
  functions.dup3 = raw_dup3;
  functions.close_range = raw_close_range;
  functions.socket = raw_socket;
  functions.fstat = raw_fstat;
  functions.fstatat = raw_fstatat;
  functions.statx = raw_statx;
  functions.faccessat = raw_faccessat;
  functions.readlinkat = raw_readlinkat;
  return functions;
}

constinit Real early_table = system_calls();
constinit Real full_table = system_calls();
constinit std::atomic<const Real*> current{&early_table};

/// Leaves what is there where the C library has no such function (statx and close_range are younger
/// than the rest).
template <class Function>
void find(Function& function, const char* name) {
  void* symbol = dlsym(RTLD_NEXT, name);
  if (symbol != nullptr) function = reinterpret_cast<Function>(symbol);
}

void find_all() {
  Real& table = full_table;
  find(table.openat, "openat");
  find(table.close, "close");
  find(table.write, "write");
  find(table.ioctl, "ioctl");
  find(table.fcntl, "fcntl");
  find(table.dup, "dup");
  find(table.dup2, "dup2");
  find(table.dup3, "dup3");
  find(table.close_range, "close_range");
  find(table.socket, "socket");
  find(table.fstat, "fstat");
  find(table.fstatat, "fstatat");
  find(table.statx, "statx");
  find(table.faccessat, "faccessat");
  find(table.readlinkat, "readlinkat");
  find(table.fopen, "fopen");
  find(table.fclose, "fclose");
  find(table.realpath, "realpath");
  find(table.opendir, "opendir");
  find(table.fdopendir, "fdopendir");
  find(table.readdir, "readdir");
  find(table.readdir_r, "readdir_r");
  find(table.closedir, "closedir");
  find(table.rewinddir, "rewinddir");
  find(table.telldir, "telldir");
  find(table.seekdir, "seekdir");
  find(table.dirfd, "dirfd");
  find(table.scandirat, "scandirat");
  find(table.getxattr, "getxattr");
  find(table.lgetxattr, "lgetxattr");
  find(table.listxattr, "listxattr");
  find(table.llistxattr, "llistxattr");
  current.store(&table, std::memory_order_release);
}

__attribute__((constructor(101))) void find_at_load() { full_real(); }

}  // namespace

const Real& full_real() {
  static constinit std::once_flag once;
  std::call_once(once, find_all);
  return full_table;
}

const Real& real() { return *current.load(std::memory_order_acquire); }

}  // namespace belfry::softnic::preload
