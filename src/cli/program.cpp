#include "cli/program.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace belfry::cli {
namespace {

int executable_error(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return errno == ENOTDIR ? ENOENT : errno;
  if (!S_ISREG(status.st_mode)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// Whether the file is an ELF program that names no dynamic linker.
bool is_static(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + std::uint64_t{i} * header.e_phentsize));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return false;
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
}

/// Whether the kernel starts it with other rights than ours: the dynamic linker then ignores LD_PRELOAD.
bool gains_rights(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

}  // namespace

Program find_program(const std::string& name) {
  if (name.empty()) return {name, ENOENT};
  if (name.find('/') != std::string::npos) return {name, executable_error(name)};
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  Program refused{name, ENOENT};
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    const int error = executable_error(candidate);
    if (error == 0) return {candidate, 0};
    if (error == EACCES) refused = {candidate, EACCES};
  }
  return refused;
}

std::string unreachable_reason(const std::string& path) {
  if (is_static(path)) return "is statically linked, and libraries cannot be preloaded into it";
  if (gains_rights(path)) {
    return "runs with other rights than yours (set-user-id, set-group-id or capabilities), so the dynamic "
           "linker preloads nothing into it";
  }
  return "";
}

}  // namespace belfry::cli
