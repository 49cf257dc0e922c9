#pragma once
/// \file
/// The other process of `--processes 2`: this program again, with options that `--help` does not show.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "bench/experiment.hpp"

namespace belfry::bench {

/// The peer's command line, argv[0] included, for a rank 0 that listens at `address`.
std::vector<std::string> peer_arguments(const RunContext& run, const std::string& address);

class PeerProcess {
 public:
  /// Starts this executable with `arguments`. The process dies with this one. Throws std::system_error.
  explicit PeerProcess(const std::vector<std::string>& arguments);
  /// Kills it if it still runs.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Waits for its end. Throws std::runtime_error if it has not ended by then, or not with exit code 0.
  void wait(std::chrono::seconds limit);

  /// "the peer process ended with exit code 1", or "" while it runs. Never waits.
  std::string ending();

  pid_t pid() const { return pid_; }

 private:
  bool reap(bool block);

  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace belfry::bench
