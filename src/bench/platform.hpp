#pragma once
/// \file
/// What the machine is, as records carry it.

#include <filesystem>
#include <optional>
#include <string>

#include "bench/record.hpp"

namespace belfry::bench {

/// The NIC of a run, as the host library sees it.
struct NicDescription {
  NicKind kind = NicKind::none;
  std::string name;      ///< device, "mlx5_0"
  std::string firmware;  ///< "" where unknown
  std::string board;     ///< board or vendor part id; "" where unknown
  std::string link;      ///< "InfiniBand 200 Gb/s", "Ethernet 400 Gb/s"; "" where unknown
};

/// What the system says that a core runs at: cpufreq's figure, else that of /proc/cpuinfo. Nothing where it
/// says nothing, or for a negative `cpu`.
std::optional<double> frequency_mhz(const std::filesystem::path& root, int cpu);

/// Describes the machine: name, cpu, cores, governor, cpu_mhz, idle_driver, c_states, kernel, memory, os,
/// gpu, gpu_driver, cuda and the NIC. What cannot be read is left out, nothing is made up. \param root "/" on
/// a live machine; tests give a folder with proc/, sys/, etc/ and usr/
Fields capture_platform(const std::filesystem::path& root, const NicDescription& nic);

/// Versions of belfry (with its source revision), its compiler and rdma-core as loaded.
Fields capture_versions();

/// rdma-core's release from the file name of libibverbs: "libibverbs.so.1.14.44.0" is 44.0.
/// \return "" where the name has another form
std::string rdma_core_release(const std::string& library_file_name);

/// The text with every byte outside printable ASCII replaced by '?', blanks trimmed and joined: what
/// sysfs and /proc give goes into JSON, and is not always UTF-8.
std::string clean_text(std::string_view text);

}  // namespace belfry::bench
