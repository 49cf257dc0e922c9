#pragma once
/// \file
/// The passive end of a test: it owns an endpoint and does what commands on a socket say. It runs as a
/// thread of the test or as a process of its own, so that one suite covers both.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <thread>

#include "softnic/verbs/endpoint.hpp"

namespace belfry::softnic::test {

enum class Command : std::uint32_t {
  connect,       ///< an Address follows; answers with its own
  fill,          ///< offset, bytes, seed
  checksum,      ///< offset, bytes -> sum
  set,           ///< offset, value: stores 8 B
  get,           ///< offset -> 8 B
  post_receive,  ///< offset, bytes
  receive,       ///< waits for one completion -> byte_len, immediate, opcode, status
};

struct Request {
  Command command;
  std::uint32_t reserved = 0;
  std::uint64_t a = 0, b = 0, c = 0;
};

struct Answer {
  std::uint64_t value = 0;
  std::uint32_t bytes = 0, immediate = 0, opcode = 0, status = 0;
};

/// Serves commands until the socket closes.
void serve(int socket, const Options& options);

/// The tester's handle on a target.
class Target {
 public:
  enum class Kind { thread, process };
  Target(Kind kind, const Options& options);
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  /// Connects both ends. \return the target's address
  Address connect(Endpoint& endpoint);
  Answer ask(Command command, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0);
  /// SIGKILL; process targets only.
  void kill();
  pid_t pid() const { return pid_; }

 private:
  int socket_ = -1;
  pid_t pid_ = -1;
  std::thread thread_;
};

}  // namespace belfry::softnic::test
