#pragma once
/// \file
/// The processes of `belfry launch`: started, watched, and ended together.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace belfry::cli {

struct RankGroupOptions {
  int ranks = 1;
  std::string program;                 ///< path
  std::vector<std::string> arguments;  ///< argv, the name included
  /// Variables of each rank, on top of this process's.
  std::function<std::vector<std::pair<std::string, std::string>>(int rank)> environment;
  bool prefix = false;            ///< each line of output begins with "[rank] "
  std::chrono::seconds grace{5};  ///< between asking ranks to end and killing them
};

/// Starts the ranks, each in a process group of its own with an empty stdin, and waits for all of them. When
/// one fails (an exit code that is not 0, or a signal), the others get SIGTERM, and SIGKILL after the grace.
/// SIGINT, SIGTERM, SIGHUP and SIGQUIT of this process are passed on and end the group likewise; SIGUSR1 and
/// SIGUSR2 are passed on. Nothing that the ranks started is left behind; they die with this process too. One
/// thread must run when it is called. Throws std::system_error where a process cannot be started. \return the
/// exit code of the rank that failed first (128 + signal where one ended it); 128 + signal if a signal
///         to this process ended the group; 0
int run_rank_group(const RankGroupOptions& options);

}  // namespace belfry::cli
