#pragma once
/// \file
/// Helpers of the tests that run with libbelfry-softnic.so linked ahead of the C library.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace belfry::softnic::test {

inline constexpr char kDevice[] = "/dev/infiniband/uverbs0";
inline constexpr char kIbDevice[] = "/sys/class/infiniband/mlx5_0";
inline constexpr char kFirmwareFile[] = "/sys/class/infiniband/mlx5_0/fw_ver";
inline constexpr char kFirmwareText[] = "28.39.1002\n";

/// Everything that read() gives, from where the descriptor stands.
std::string read_all(int fd);

/// How many descriptors of this process lead to the memory of a uverbs file.
unsigned open_uverbs_memories();

/// Runs `body` in a fork's child and returns what it returns (or 128 + the signal that ended it).
int in_child(const std::function<int()>& body);

struct Outcome {
  int status = 0;      ///< exit status, or 128 + signal
  std::string output;  ///< of both streams
};

/// Executes a program. \param settings NAME=VALUE, added to its environment
Outcome run(const std::vector<std::string>& command, const std::vector<std::string>& settings = {});

/// Executes a program with the library preloaded.
Outcome run_preloaded(const std::vector<std::string>& command, const std::vector<std::string>& settings = {});

}  // namespace belfry::softnic::test
