#pragma once
/// \file
/// How ranks find each other before there is RDMA: small blobs, exchanged by all, each call with a
/// deadline. thread_bootstrap.hpp joins threads of one process, tcp_bootstrap.hpp processes.

#include <cstddef>
#include <span>
#include <vector>

#include "belfry/host/deadline.hpp"

namespace belfry::host {

using Blob = std::vector<std::byte>;

/// The largest blob of one rank, bytes.
inline constexpr std::size_t kMaxBlobBytes = std::size_t{16} << 20;

/// One rank's membership. Every rank makes the same calls in the same order, from one thread at a time.
///
/// Failures are typed and final: after an Error the group is broken, and every later call of any rank
/// throws too. Kinds: not_reachable (a rank left or died; the message says which where it is known),
/// timed_out (the deadline passed), bad_argument (ranks in different calls). Only a refused argument (a
/// blob too large, a root that does not exist) leaves the group as it was.
class Bootstrap {
 public:
  Bootstrap() = default;
  virtual ~Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// \param mine at most kMaxBlobBytes; ranks may give different lengths
  /// \return every rank's blob, by rank
  virtual std::vector<Blob> all_gather(std::span<const std::byte> mine, Deadline deadline) = 0;

  /// Returns once every rank has come.
  void barrier(Deadline deadline);

  /// \param mine the blob; looked at on `root` only
  /// \return root's blob, on every rank
  Blob broadcast(std::span<const std::byte> mine, int root, Deadline deadline);
};

}  // namespace belfry::host
