#pragma once
/// \file
/// The C library's own functions, behind the ones that this library puts in front of them.
///
/// Programs and other libraries call our functions before our constructor has run (a malloc that reads
/// /proc when it starts, for one), when dlsym() may not be called yet: so the simple ones start as plain
/// system calls, and the constructor replaces them.

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdio>

namespace belfry::softnic::preload {

using DirentFilter = int (*)(const struct dirent*);
using DirentOrder = int (*)(const struct dirent**, const struct dirent**);

struct Real {
  int (*openat)(int, const char*, int, ...);
  int (*close)(int);
  ssize_t (*write)(int, const void*, size_t);
  int (*ioctl)(int, unsigned long, ...);
  int (*fcntl)(int, int, ...);
  int (*dup)(int);
  int (*dup2)(int, int);
  int (*dup3)(int, int, int);
  int (*close_range)(unsigned, unsigned, int);
  int (*socket)(int, int, int);
  int (*fstat)(int, struct stat*);
  int (*fstatat)(int, const char*, struct stat*, int);
  int (*statx)(int, const char*, int, unsigned, struct statx*);
  int (*faccessat)(int, const char*, int, int);
  ssize_t (*readlinkat)(int, const char*, char*, size_t);

  FILE* (*fopen)(const char*, const char*);
  int (*fclose)(FILE*);
  char* (*realpath)(const char*, char*);
  DIR* (*opendir)(const char*);
  DIR* (*fdopendir)(int);
  struct dirent* (*readdir)(DIR*);
  int (*readdir_r)(DIR*, struct dirent*, struct dirent**);
  int (*closedir)(DIR*);
  void (*rewinddir)(DIR*);
  long (*telldir)(DIR*);
  void (*seekdir)(DIR*, long);
  int (*dirfd)(DIR*);
  ssize_t (*getxattr)(const char*, const char*, void*, size_t);
  ssize_t (*lgetxattr)(const char*, const char*, void*, size_t);
  ssize_t (*listxattr)(const char*, char*, size_t);
  ssize_t (*llistxattr)(const char*, char*, size_t);
  int (*scandirat)(int, const char*, struct dirent***, DirentFilter, DirentOrder);
};

/// Any thread, at any time; what stands below the blank line may be null before the constructor has run.
const Real& real();

/// Looks everything up first if that has not happened yet.
const Real& full_real();

}  // namespace belfry::softnic::preload
