/// \file
/// Versions of rdma-core, the kernel and its driver, and the interface between them.

#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

/// The oldest release that belfry's tests run with.
constexpr double kOldestRelease = 44;
/// libibverbs speaks versions 3 to 6 of the kernel's interface; 6 is Linux's since 2.6.21.
constexpr std::int64_t kLeastAbi = 3;
constexpr std::int64_t kMostAbi = 6;

constexpr std::array<Rule, 7> kRules = {{
    {"versions.rdma_core", Severity::ok, "libibverbs and libmlx5 as loaded", "", ""},
    {"versions.mismatch", Severity::error, "libibverbs and libmlx5 are of different releases",
     "they share private structures: a mix crashes or finds no device",
     "find the stray one: `ldconfig -p | grep -e ibverbs -e mlx5`, and LD_LIBRARY_PATH"},
    {"versions.old", Severity::warning, "rdma-core is older than belfry is tested with (44)",
     "DEVX and dma-buf calls may be missing", "upgrade rdma-core (libibverbs1, ibverbs-providers)"},
    {"versions.abi", Severity::ok, "the kernel's user verbs interface", "", ""},
    {"versions.abi_unsupported", Severity::error,
     "libibverbs does not speak the kernel's user verbs interface", "",
     "use kernel and rdma-core of one generation"},
    {"versions.kernel", Severity::ok, "kernel, and where the mlx5 driver comes from", "", ""},
    {"versions.unreadable", Severity::unknown, "a version cannot be read", "", ""},
}};

std::string file_of(const void* symbol) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  return std::filesystem::canonical(info.dli_fname, error).filename().string();
}

template <class Function>
const void* address_of(Function* function) {
  // A cast through an integer: ISO C++ has none from a function's address to an object's.
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(function));
}

void look_at_rdma_core(Visit& visit) {
  const LoadedLibraries libraries = loaded_libraries();
  const std::string verbs = rdma_core_release(libraries.libibverbs);
  const std::string mlx5 = rdma_core_release(libraries.libmlx5);
  const std::string found = libraries.libibverbs + ", " + libraries.libmlx5;
  if (verbs.empty() || mlx5.empty()) {
    visit.report(kRules[6], "rdma-core", found);
  } else if (verbs != mlx5) {
    visit.report(kRules[1], "rdma-core", found);
  } else if (std::strtod(verbs.c_str(), nullptr) < kOldestRelease) {
    visit.report(kRules[2], "rdma-core", "release " + verbs);
  } else {
    visit.report(kRules[0], "rdma-core", "release " + verbs + " (" + found + ")");
  }
}

void look_at_kernel(Visit& visit) {
  const Tree& tree = visit.tree();
  const auto kernel = tree.line("/proc/sys/kernel/osrelease");
  if (!kernel) {
    visit.report(kRules[6], "kernel", "/proc/sys/kernel/osrelease is not readable");
    return;
  }
  std::string driver = "mlx5_core not loaded";
  if (tree.exists("/sys/module/mlx5_core")) {
    // Only the out-of-tree driver (MLNX_OFED, DOCA-OFED) states a version.
    const auto version = tree.line("/sys/module/mlx5_core/version");
    driver = version ? "mlx5_core " + *version + " (out of tree)" : "mlx5_core of the kernel";
  }
  visit.report(kRules[5], "kernel", "Linux " + *kernel + ", " + driver);
}

void look_at_abi(Visit& visit) {
  const auto abi = visit.tree().number("/sys/class/infiniband_verbs/abi_version");
  if (!abi) {
    if (!visit.machine.devices.empty()) visit.report(kRules[6], "uverbs", "abi_version is not readable");
    return;
  }
  std::string found = "version " + std::to_string(*abi);
  for (const RdmaDevice& device : visit.machine.devices) {
    if (!device.uverbs_abi.empty()) found += ", " + device.name + " " + device.uverbs_abi;
  }
  visit.report(*abi < kLeastAbi || *abi > kMostAbi ? kRules[4] : kRules[3], "uverbs", found);
}

void check_versions(Visit& visit) {
  // Another root's libraries are not the ones loaded here.
  if (visit.tree().live()) look_at_rdma_core(visit);
  look_at_kernel(visit);
  look_at_abi(visit);
}

}  // namespace

LoadedLibraries loaded_libraries() {
  return {file_of(address_of(&ibv_get_device_list)), file_of(address_of(&mlx5dv_is_supported))};
}

std::string rdma_core_release(const std::string& file_name) {
  // NAME.so.ABI.PRIVATE.RELEASE
  const std::size_t so = file_name.find(".so.");
  if (so == std::string::npos) return {};
  const std::size_t first = file_name.find('.', so + 4);
  const std::size_t second = first == std::string::npos ? first : file_name.find('.', first + 1);
  if (second == std::string::npos) return {};
  const std::string release = file_name.substr(second + 1);
  return release.find_first_not_of("0123456789.") == std::string::npos ? release : std::string();
}

extern const Check kVersionsCheck{"versions", "rdma-core, kernel, driver, and the interface between them",
                                  kRules, check_versions};

}  // namespace belfry::doctor
