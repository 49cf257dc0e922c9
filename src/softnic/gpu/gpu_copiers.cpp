#include "softnic/gpu/gpu_copiers.hpp"

#include <cstdio>
#include <utility>

#include "softnic/firmware/memory_fault.hpp"

namespace belfry::softnic {

void GpuCopiers::add(MemoryOwner gpu, GpuLibrary& library) {
  std::string error;
  auto copier = library.make_copier(gpu, error);
  if (copier == nullptr) {
    std::fprintf(stderr, "belfry softnic: no copies of GPU %d's memory for queues in host memory: %s\n", gpu,
                 error.c_str());
    return;
  }
  const std::lock_guard lock(mutex_);
  staging_ = copier->staging();
  copiers_.emplace(gpu, std::move(copier));
}

bool GpuCopiers::has(MemoryOwner gpu) const {
  const std::lock_guard lock(mutex_);
  return copiers_.contains(gpu);
}

void GpuCopiers::quit() {
  const std::lock_guard lock(mutex_);
  quit_ = true;
}

template <class Copy>
bool GpuCopiers::copy(MemoryOwner gpu, const Copy& copy) {
  const std::lock_guard lock(mutex_);
  const auto found = copiers_.find(gpu);
  if (quit_ || found == copiers_.end()) return false;
  // A fault within CUDA is no fault of the program's memory, and CUDA must not be left in the middle.
  sigjmp_buf* const landing = std::exchange(memory_fault::landing, nullptr);
  const bool done = copy(*found->second);
  memory_fault::landing = landing;
  if (!done && !std::exchange(failed_, true)) {
    std::fprintf(stderr, "belfry softnic: a copy of GPU memory failed, and so does its queue: %s\n",
                 found->second->error().c_str());
  }
  return done;
}

bool GpuCopiers::to_gpu(MemoryOwner gpu, void* to, const void* staged, std::size_t bytes) {
  return copy(gpu, [&](GpuCopier& copier) { return copier.to_gpu(to, staged, bytes); });
}

bool GpuCopiers::from_gpu(MemoryOwner gpu, void* staged, const void* from, std::size_t bytes) {
  return copy(gpu, [&](GpuCopier& copier) { return copier.from_gpu(staged, from, bytes); });
}

}  // namespace belfry::softnic
