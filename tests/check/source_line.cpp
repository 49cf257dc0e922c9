// Return addresses into lines of the sources, by addr2line, which comes with every compiler's binutils.

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check/trace.hpp"

namespace belfry::check {
namespace {

using Lines = std::vector<std::string>;

Lines output_of(const std::string& command) {
  Lines lines;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (pipe == nullptr) return lines;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
    lines.emplace_back(buffer.data());
    while (!lines.back().empty() && lines.back().back() == '\n') lines.back().pop_back();
  }
  return lines;
}

/// The shim says nothing about who called it, nor does what starts an agent.
bool is_shim(const std::string& file) {
  for (const char* part :
       {"/belfry/port/", "check/port_memory.hpp", "check/access", "check/agent.cpp", "coroutine.cpp"})
    if (file.find(part) != std::string::npos) return true;
  return false;
}

/// Relative to the repository; empty for what is not of it, and for the shim. By its folders: what a compiler
/// cache hands out was compiled elsewhere.
std::string own_place(const std::string& line) {
  const std::string place = std::filesystem::path(line).lexically_normal().string();
  if (place.rfind("/usr/", 0) == 0 || is_shim(place)) return "";
  for (const char* folder : {"/include/belfry/", "/tests/check/", "/src/host/", "/src/proxy/"}) {
    const auto at = place.rfind(folder);
    if (at != std::string::npos) return place.substr(at + 1, place.find(" (discriminator") - at - 1);
  }
  return "";
}

/// [address] the lines that it stands for: the innermost function first, and then those that it was inlined
/// into.
std::map<const void*, Lines>& known() {
  static std::map<const void*, Lines> places;
  return places;
}

std::string file_of(const std::string& place) { return place.substr(0, place.find(':')); }
std::string name_of(const std::string& place) { return place.substr(place.rfind('/') + 1); }

}  // namespace

void learn_lines(const std::vector<const void*>& sites) {
  // One run for all of a file: each reads all of its debugging information.
  std::map<std::string, std::vector<std::pair<std::uintptr_t, const void*>>> by_file;
  for (const void* site : sites) {
    if (site == nullptr || !known().emplace(site, Lines{}).second) continue;
    Dl_info info{};
    if (dladdr(site, &info) == 0 || info.dli_fname == nullptr) continue;
    // One byte back: a return address is behind its call, perhaps on the next line.
    const auto offset = static_cast<const char*>(site) - static_cast<const char*>(info.dli_fbase) - 1;
    by_file[info.dli_fname].emplace_back(static_cast<std::uintptr_t>(offset), site);
  }
  for (const auto& [file, addresses] : by_file) {
    std::string command = fmt::format("addr2line -a -i -e '{}'", file);
    for (const auto& address : addresses) command += fmt::format(" {:#x}", address.first);
    std::size_t next = 0;
    for (const std::string& line : output_of(command + " 2>/dev/null")) {
      if (line.rfind("0x", 0) == 0) {
        ++next;
      } else if (const std::string place = own_place(line); next != 0 && !place.empty()) {
        known()[addresses[next - 1].second].push_back(place);
      }
    }
  }
}

std::string source_line(const void* site, const std::vector<const void*>& callers) {
  std::vector<const void*> all = callers;
  all.insert(all.begin(), site);
  learn_lines(all);
  std::string first;
  for (const void* address : all) {
    for (const std::string& place : known()[address]) {
      if (first.empty()) {
        first = place;
      } else if (file_of(place) != file_of(first)) {
        return fmt::format("{} < {}", first, name_of(place));
      }
    }
  }
  return first.empty() ? fmt::format("{}", site) : first;
}

}  // namespace belfry::check
