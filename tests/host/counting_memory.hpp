#pragma once
/// \file
/// Host memory whose provider knows what it gave, and what is still alive.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "belfry/host/queue_memory.hpp"

namespace belfry::host {

/// From one thread at a time.
struct CountingMemory final : QueueMemory {
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    ++*allocations;
    ++*alive;
    auto inner = host->allocate(bytes);
    auto* start = static_cast<std::byte*>(inner.get());
    ranges.emplace_back(start, start + bytes);
    return {start, [inner, count = alive](void*) { --*count; }};
  }
  void fill(void* address, std::byte value, std::size_t bytes) override {
    filled += bytes;
    host->fill(address, value, bytes);
  }
  void write(void* to, const void* from, std::size_t bytes) override { host->write(to, from, bytes); }
  std::uint64_t load(const void* address) override { return host->load(address); }

  bool contains(const void* address) const {
    const auto* at = static_cast<const std::byte*>(address);
    return std::any_of(ranges.begin(), ranges.end(),
                       [at](const auto& range) { return at >= range.first && at < range.second; });
  }

  std::shared_ptr<QueueMemory> host = host_queue_memory();
  std::shared_ptr<int> allocations = std::make_shared<int>(0);
  std::shared_ptr<int> alive = std::make_shared<int>(0);
  std::vector<std::pair<const std::byte*, const std::byte*>> ranges;
  std::size_t filled = 0;
};

}  // namespace belfry::host
