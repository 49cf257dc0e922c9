#include "cli/reexec.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "softnic/config_variables.hpp"
#include "softnic/preload/location.hpp"

namespace belfry::cli {
namespace {

namespace fs = std::filesystem;
namespace preload = softnic::preload;

/// Holds the id of the process that has been started anew. An exec keeps the id, a child has another:
/// so the mark says nothing to children that inherit it.
constexpr char kMark[] = "BELFRY_SOFTNIC_STARTED";
/// What LD_PRELOAD was before, for restore_environment().
constexpr char kPreloadBefore[] = "BELFRY_SOFTNIC_PRELOAD_BEFORE";
constexpr char kPreload[] = "LD_PRELOAD";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

fs::path own_executable() {
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) throw std::system_error(error, "cannot read /proc/self/exe (is /proc mounted?)");
  return path;
}

/// LD_PRELOAD separates with colons or spaces.
std::vector<std::string> split_preload(std::string_view text) {
  std::vector<std::string> entries;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(": ");
    const std::string_view entry = text.substr(0, end);
    if (!entry.empty()) entries.emplace_back(entry);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return entries;
}

/// The variables that restore_environment() takes away.
std::vector<EnvironmentChange> without_softnic() {
  std::vector<EnvironmentChange> changes;
  for (const softnic::ConfigVariable& variable : softnic::config_variables()) {
    changes.push_back({std::string(softnic::kEnvironmentPrefix).append(variable.suffix), "", true});
  }
  return changes;
}

}  // namespace

fs::path find_softnic_library() {
  const fs::path beside = own_executable().parent_path();
  const fs::path candidates[] = {beside / ".." / preload::kLibraryDirectoryName, beside / "../lib", beside,
                                 fs::path(preload::kBuildDirectory), fs::path(preload::kInstallDirectory)};
  std::string looked;
  for (const fs::path& directory : candidates) {
    std::error_code error;
    const fs::path found = fs::canonical(directory / preload::kLibraryFile, error);
    if (!error) return found;
    looked += "\n  " + directory.lexically_normal().string();
  }
  throw std::runtime_error(
      std::string(preload::kLibraryFile) +
      " is not found (build the target belfry-softnic, or install belfry). Looked in:" + looked);
}

std::string preload_list(const fs::path& library, std::string_view before) {
  if (library.string().find_first_of(": ") != std::string::npos) {
    throw std::runtime_error("LD_PRELOAD cannot name a path with a space or a colon in it: " +
                             library.string() + "; move belfry to another folder");
  }
  std::string list(preload::kSanitizerRuntime);
  if (!list.empty()) list += ':';
  list += library.string();
  for (const std::string& entry : split_preload(before)) {
    if (entry == library.string() || entry == preload::kSanitizerRuntime) continue;
    list += ':';
    list += entry;
  }
  return list;
}

std::vector<EnvironmentChange> softnic_environment(const softnic::Config& config) {
  std::vector<EnvironmentChange> changes = without_softnic();
  for (const auto& [name, value] : softnic::to_environment(config)) changes.push_back({name, value});
  changes.push_back({kPreload, preload_list(find_softnic_library(), environment(kPreload))});
  // AddressSanitizer would hold the leaks of programs that are not ours against them.
  if (!preload::kSanitizerRuntime.empty() && environment("ASAN_OPTIONS").empty()) {
    changes.push_back({"ASAN_OPTIONS", "detect_leaks=0"});
  }
  return changes;
}

void apply(const std::vector<EnvironmentChange>& changes) {
  for (const EnvironmentChange& change : changes) {
    const int result =
        change.remove ? unsetenv(change.name.c_str()) : setenv(change.name.c_str(), change.value.c_str(), 1);
    if (result != 0) throw std::system_error(errno, std::generic_category(), "cannot set " + change.name);
  }
}

softnic::Config config_with_own_fabric(const std::string& command, const std::string& group) {
  softnic::Config config = softnic::Config::from_environment();
  if (config.fabric == softnic::Config{}.fabric)
    config.fabric = command + "-" + (group.empty() ? std::to_string(getpid()) : group);
  return config;
}

bool is_under_softnic() { return environment(kMark) == std::to_string(getpid()); }

void reexec_under_softnic(int argc, char** argv, const softnic::Config& config) {
  if (is_under_softnic()) throw std::logic_error("this program already runs under the software NIC");
  const std::string preload_before = environment(kPreload);
  apply(softnic_environment(config));
  apply({{kMark, std::to_string(getpid())}, {kPreloadBefore, preload_before}});
  std::vector<char*> arguments(argv, argv + argc);
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  execv(own_executable().c_str(), arguments.data());
  throw std::system_error(errno, std::generic_category(), "cannot execute " + own_executable().string());
}

void restore_environment() {
  if (!is_under_softnic()) return;
  // The library reads its settings when it is first asked for a path of its own: now, before they go.
  [[maybe_unused]] const int asked = access("/sys/class/infiniband", F_OK);
  const std::string before = environment(kPreloadBefore);
  apply(without_softnic());
  apply({{kPreloadBefore, "", true}, {kPreload, before, before.empty()}});
}

}  // namespace belfry::cli
