#pragma once
/// \file
/// What MPI, Slurm and torchrun tell the processes that they start.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace belfry::host {

/// A process's place among those that one launcher has started.
struct LaunchedRank {
  std::string launcher;  ///< "OpenMPI", "torchrun", "Slurm"
  int rank = 0;
  int size = 1;
  /// HOST:PORT on which rank 0 can listen and the others find it; nothing where the launcher does not say
  /// enough.
  std::optional<std::string> address;
};

/// The innermost launcher's, or nothing. Where one runs inside another (torchrun under srun, mpirun in a
/// Slurm job), that is the one which started this process. Throws Error (bad_argument) for a variable of
/// OpenMPI or Slurm that makes no sense.
std::optional<LaunchedRank> launched_rank(
    const std::function<std::optional<std::string>(std::string_view name)>& lookup);

/// The first host of a Slurm list: "node[003-7,9],other" gives "node003".
std::string first_host(std::string_view list);

}  // namespace belfry::host
