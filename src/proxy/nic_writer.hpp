#pragma once
/// \file
/// A queue from this PE to itself, by which a worker has its NIC write words of 8 B.

#include <cstdint>
#include <memory>
#include <string>

#include "belfry/host/connection.hpp"
#include "belfry/host/post.hpp"
#include "belfry/host/verbs_queue.hpp"

namespace belfry::proxy {

/// Used by one thread. Writes come in order, for they go to one queue. Where that queue has failed nothing is
/// written any more; who watches the words' heartbeat finds out.
class NicWriter {
 public:
  NicWriter(const host::ProtectionDomain& domain, const host::ConnectionParameters& parameters);

  /// \return false where the queue is full, or has failed
  bool write(const host::RemoteAddress& to, std::uint64_t value);

 private:
  void reap();

  std::unique_ptr<host::VerbsQueue> queue_;
  std::uint32_t outstanding_ = 0;
  std::uint32_t since_signal_ = 0;
  bool failed_ = false;
};

}  // namespace belfry::proxy
