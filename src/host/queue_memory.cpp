#include "belfry/host/queue_memory.hpp"

#include <cstring>

#include "belfry/port/memory.hpp"
#include "host/host_allocation.hpp"

namespace belfry::host {

namespace {

class HostQueueMemory final : public QueueMemory {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) override { return allocate_host(bytes, 4096); }
  void fill(void* address, std::byte value, std::size_t bytes) override {
    std::memset(address, std::to_integer<int>(value), bytes);
  }
  void write(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  std::uint64_t load(const void* address) override {
    return port::load_acquire<port::Scope::system>(static_cast<const std::uint64_t*>(address));
  }
};

}  // namespace

void QueueMemory::read(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

std::shared_ptr<QueueMemory> host_queue_memory() { return std::make_shared<HostQueueMemory>(); }

}  // namespace belfry::host
