#pragma once
/// \file
/// Starting programs under the software NIC: the environment that its preload library reads, and this
/// program's own second start.

#include <filesystem>
#include <string>
#include <vector>

#include "softnic/config.hpp"

namespace belfry::cli {

/// Looks beside this executable (../lib), in the build tree, and where `cmake --install` puts it.
/// \throw std::runtime_error that names the places
std::filesystem::path find_softnic_library();

/// What LD_PRELOAD must be for `library` to come first (behind the sanitizer's runtime where it was
/// built with one). Entries of `before` are kept behind it.
std::string preload_list(const std::filesystem::path& library, std::string_view before);

struct EnvironmentChange {
  std::string name;
  std::string value;
  bool remove = false;
};

/// What has to change in this process's environment for an exec'd program to see the software NIC with
/// these settings, whatever BELFRY_SOFTNIC_* and LD_PRELOAD were.
/// \throw std::runtime_error where the library is not found
std::vector<EnvironmentChange> softnic_environment(const softnic::Config& config);

void apply(const std::vector<EnvironmentChange>& changes);

/// Whether this very process has been started by reexec_under_softnic(); its children have not.
bool is_under_softnic();

/// Executes this program anew, with the same arguments, under the software NIC. Call it before anything
/// touches CUDA or opens an RDMA device. Does not return.
/// \throw std::logic_error where it has happened already, std::runtime_error, std::system_error
[[noreturn]] void reexec_under_softnic(int argc, char** argv, const softnic::Config& config);

/// The environment's settings with a fabric of this process's own, so that nobody else's traffic meets it;
/// a fabric that the user has named is taken.
/// \param command names the fabric, together with the group
/// \param group   whose processes share the fabric; empty: this process alone
/// \throw std::invalid_argument for a setting that the software NIC refuses
softnic::Config config_with_own_fabric(const std::string& command, const std::string& group = "");

/// After the second start: takes out of the environment what the first put in, so that this process's
/// children run as they would without it. This process keeps its NIC. Nothing happens otherwise.
void restore_environment();

}  // namespace belfry::cli
