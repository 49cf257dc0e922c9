#include "belfry/host/queue_memory.hpp"

#include <cstring>

#include "host/host_allocation.hpp"

namespace belfry::host {

namespace {

class HostQueueMemory final : public QueueMemory {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) override { return allocate_host(bytes, 4096); }
  void fill(void* address, std::byte value, std::size_t bytes) override {
    std::memset(address, std::to_integer<int>(value), bytes);
  }
};

}  // namespace

std::shared_ptr<QueueMemory> host_queue_memory() { return std::make_shared<HostQueueMemory>(); }

}  // namespace belfry::host
