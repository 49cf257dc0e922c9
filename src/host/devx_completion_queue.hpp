#pragma once
/// \file
/// A completion queue as a DEVX object: ring and doorbell record in one umem.

#include <memory>

#include "belfry/host/devx_queue.hpp"
#include "host/devx_objects.hpp"

namespace belfry::host {

class DevxCompletionQueue {
 public:
  struct Options {
    std::uint32_t entries = 0;  ///< a power of two
    CompletionLayout layout = CompletionLayout::ring;
    bool ignore_overrun = true;
  };

  DevxCompletionQueue() = default;
  /// Throws Error.
  DevxCompletionQueue(ibv_context* context, QueueMemory& memory, std::uint32_t uar_page,
                      const Options& options);

  const CompletionRing& ring() const { return ring_; }

 private:
  std::shared_ptr<void> storage_;
  Umem umem_;
  DevxObject object_;
  CompletionRing ring_;
};

}  // namespace belfry::host
