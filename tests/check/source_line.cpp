// Return addresses into lines of the sources, by addr2line, which comes with every compiler's binutils.

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check/trace.hpp"

namespace belfry::check {
namespace {

std::vector<std::string> output_of(const std::string& command) {
  std::vector<std::string> lines;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (pipe == nullptr) return lines;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
    lines.emplace_back(buffer.data());
    while (!lines.back().empty() && lines.back().back() == '\n') lines.back().pop_back();
  }
  return lines;
}

/// The shim itself says nothing about who called it.
bool is_shim(const std::string& file) {
  for (const char* part : {"/belfry/port/", "check/port_memory.hpp", "check/access", "check/dma.hpp"})
    if (file.find(part) != std::string::npos) return true;
  return false;
}

std::string look_up(const void* site) {
  Dl_info info{};
  if (dladdr(site, &info) == 0 || info.dli_fname == nullptr) return fmt::format("{}", site);
  // One byte back: a return address is behind its call, perhaps on the next line.
  const auto offset = static_cast<const char*>(site) - static_cast<const char*>(info.dli_fbase) - 1;
  const auto lines = output_of(fmt::format("addr2line -i -e '{}' {:#x} 2>/dev/null", info.dli_fname, offset));
  for (const std::string& line : lines) {
    if (line.empty() || line[0] == '?' || is_shim(line)) continue;
    std::string place = line.substr(0, line.find(" (discriminator"));
    for (const char* root : {"/include/", "/tests/"}) {
      const auto at = place.rfind(root);
      if (at != std::string::npos) return place.substr(at + 1);
    }
    return place;
  }
  return fmt::format("{}", site);
}

}  // namespace

std::string source_line(const void* site) {
  static std::map<const void*, std::string> known;
  const auto found = known.find(site);
  if (found != known.end()) return found->second;
  return known[site] = look_up(site);
}

}  // namespace belfry::check
