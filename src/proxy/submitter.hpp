#pragma once
/// \file
/// Where a worker hands its work to a NIC: the seam at which another one can stand in its place (a test, the
/// weak-memory checker).

#include <cstdint>
#include <span>

#include "belfry/wire/cqe.hpp"

namespace belfry::proxy {

/// One work request, with addresses and keys resolved.
struct Work {
  enum class Kind : std::uint8_t { write, write_value, read, fetch_add, compare_swap };
  Kind kind = Kind::write;
  bool signaled = false;
  std::uint32_t bytes = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint64_t local = 0;
  std::uint64_t remote = 0;
  std::uint64_t value = 0;         ///< write_value; fetch_add: to add; compare_swap: to compare with
  std::uint64_t second_value = 0;  ///< compare_swap: to store
  std::uint64_t id = 0;            ///< comes back with the completion
};

struct WorkCompletion {
  std::uint32_t queue = 0;
  std::uint64_t id = 0;
  wire::Syndrome syndrome = wire::Syndrome::none;
  std::uint8_t vendor = 0;
  std::uint32_t qpn = 0;
};

/// How much of a chain a queue took.
struct PostResult {
  std::size_t accepted = 0;  ///< the first so many; the others are as if never posted
  int error = 0;             ///< 0; ENOMEM: full, later perhaps; else an errno that will not go away
};

/// Queues are numbered by whoever made the submitter. One thread at a time calls it.
class Submitter {
 public:
  virtual ~Submitter() = default;

  /// Posts a chain to one queue, in order, with one doorbell.
  virtual PostResult post(std::uint32_t queue, std::span<const Work> chain) = 0;

  /// Completions of signaled work that have come, of one queue in order. \return how many of `out` were
  /// filled
  virtual std::size_t poll(std::span<WorkCompletion> out) = 0;

  /// Work requests that a queue holds at most.
  virtual std::uint32_t depth() const = 0;
  virtual std::uint32_t qpn(std::uint32_t queue) const = 0;
};

}  // namespace belfry::proxy
