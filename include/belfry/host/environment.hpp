#pragma once
/// \file
/// Every environment variable that the host library reads. Nothing else in it calls getenv: callers
/// read an Environment once and hand its values on. (The software NIC has its own, BELFRY_SOFTNIC_*.)

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belfry::host {

/// One variable, for `--help` texts and documentation.
struct EnvironmentVariable {
  std::string_view name;
  std::string_view values;   ///< what it takes
  std::string_view meaning;  ///< what it does, and the default
};

struct Environment {
  /// BELFRY_NIC: `auto`, `soft` (the software NIC), a device name, or `NAME:PORT`.
  std::string nic = "auto";
  /// BELFRY_GID_INDEX: 0..255; overrides the automatic choice.
  std::optional<int> gid_index;
  /// BELFRY_PATH_MTU: 256, 512, 1024, 2048 or 4096 bytes; an upper bound on the automatic choice.
  std::optional<unsigned> path_mtu;
  /// BELFRY_SERVICE_LEVEL: 0..15 (RoCE: 0..7, the priority).
  std::optional<std::uint8_t> service_level;
  /// BELFRY_TRAFFIC_CLASS: 0..255; DSCP in the upper six bits.
  std::optional<std::uint8_t> traffic_class;
  /// BELFRY_ACK_TIMEOUT: 0..31, for 4.096 us << n; 0 waits for ever.
  std::optional<std::uint8_t> ack_timeout;
  /// BELFRY_RETRY_COUNT: 0..7.
  std::optional<std::uint8_t> retry_count;
  /// BELFRY_RNR_RETRY: 0..7; 7 retries for ever.
  std::optional<std::uint8_t> rnr_retry;
  /// BELFRY_BOOTSTRAP_ADDRESS: `HOST:PORT` of rank 0, `[IPV6]:PORT` for IPv6.
  std::optional<std::string> bootstrap_address;
  /// BELFRY_BOOTSTRAP_RANK: 0..size-1.
  std::optional<int> bootstrap_rank;
  /// BELFRY_BOOTSTRAP_SIZE: 1..65536.
  std::optional<int> bootstrap_size;
  /// BELFRY_BOOTSTRAP_TIMEOUT: seconds, 1..86400.
  std::chrono::seconds bootstrap_timeout{60};
  /// Who has given rank, size and, as far as it is set, address, where BELFRY_BOOTSTRAP_RANK and _SIZE are
  /// not set:
  ///  - "OpenMPI" (mpirun): OMPI_COMM_WORLD_RANK, _SIZE; the address where all ranks are on this host;
  ///  - "torchrun": RANK, WORLD_SIZE, MASTER_ADDR, and the port after MASTER_PORT;
  ///  - "Slurm" (srun): SLURM_PROCID, SLURM_STEP_NUM_TASKS; the first host of SLURM_STEP_NODELIST.
  /// Ports of OpenMPI and Slurm follow from the job's name, 20000..29999. An address of one's own wins. Empty
  /// where no launcher is known.
  std::string launcher;

  /// Reads this process's environment. Throws Error (bad_argument) that names variable, value and
  /// range; an empty value counts as unset.
  static Environment of_this_process();

  using Lookup = std::function<std::optional<std::string>(std::string_view name)>;
  /// The same from any source.
  static Environment parse(const Lookup& lookup);

  /// All of the above, in the order of the members.
  static std::span<const EnvironmentVariable> variables();

  /// The names among `names` that start with BELFRY_ and that no part of belfry's host library or
  /// software NIC knows: most likely misspelled.
  static std::vector<std::string> unknown(std::span<const std::string> names);

  /// The names of this process's variables.
  static std::vector<std::string> names_of_this_process();
};

}  // namespace belfry::host
