#include "softnic/gpu/gpu_copiers.hpp"

#include <cstdio>
#include <utility>

#include "softnic/firmware/memory_fault.hpp"

namespace belfry::softnic {

void GpuCopiers::add(MemoryOwner gpu, GpuLibrary& library, const GpuConfig& config) {
  std::string error;
  auto copies = static_cast<std::size_t>(gpu) < kMostGpus ? library.make_copier(gpu, error) : nullptr;
  if (copies == nullptr) {
    std::fprintf(stderr, "belfry softnic: no copies of GPU %d's memory for queues in host memory: %s\n", gpu,
                 error.c_str());
    return;
  }
  std::unique_ptr<GpuCopierKernel> kernel;
  if (config.copies == GpuCopies::automatic) {
    kernel = library.make_copier_kernel(gpu, error);
    if (kernel == nullptr)
      std::fprintf(stderr, "belfry softnic: no copier on GPU %d, CUDA copies its memory: %s\n", gpu,
                   error.c_str());
  }
  RingCopierOptions options;
  options.idle = config.idle;
  auto copier = std::make_unique<RingCopier>(std::move(copies), std::move(kernel), options);
  const std::lock_guard lock(made_mutex_);
  staging_ = copier->staging();
  copiers_[static_cast<std::size_t>(gpu)].store(copier.get(), std::memory_order_release);
  made_.push_back(std::move(copier));
}

void GpuCopiers::quit() {
  const std::lock_guard lock(busy_);
  quit_ = true;
}

template <class Work>
bool GpuCopiers::outside(MemoryOwner gpu, const Work& work) {
  RingCopier* const copier = find(gpu);
  if (copier == nullptr) return false;
  // A fault within CUDA is no fault of the program's memory, and CUDA must not be left in the middle.
  sigjmp_buf* const landing = std::exchange(memory_fault::landing, nullptr);
  bool done = false;
  lock_.outside([&] {
    const std::lock_guard busy(busy_);
    if (!quit_) done = work(*copier);
  });
  memory_fault::landing = landing;
  return done;
}

template <class Copy>
bool GpuCopiers::copy(MemoryOwner gpu, const Copy& copy) {
  return outside(gpu, [&](RingCopier& copier) {
    const bool done = copy(copier);
    if (!done && !std::exchange(failed_, true)) {
      std::fprintf(stderr, "belfry softnic: a copy of GPU memory failed, and so does its queue: %s\n",
                   copier.error().c_str());
    }
    return done;
  });
}

bool GpuCopiers::to_gpu(MemoryOwner gpu, void* to, const void* staged, std::size_t bytes) {
  return copy(gpu, [&](RingCopier& copier) { return copier.to_gpu(to, staged, bytes); });
}

bool GpuCopiers::from_gpu(MemoryOwner gpu, void* staged, const void* from, std::size_t bytes) {
  return copy(gpu, [&](RingCopier& copier) { return copier.from_gpu(staged, from, bytes); });
}

bool GpuCopiers::between(MemoryOwner gpu, void* to, const void* from, std::size_t bytes) {
  return copy(gpu, [&](RingCopier& copier) { return copier.between(to, from, bytes); });
}

bool GpuCopiers::update(MemoryOwner gpu, void* at, wire::WqeOpcode opcode, const AtomicOperands& operands,
                        std::uint64_t* former) {
  return copy(gpu, [&](RingCopier& copier) { return copier.update(at, opcode, operands, former); });
}

bool GpuCopiers::holds(MemoryOwner gpu, const void* address, std::size_t bytes) {
  return outside(gpu, [&](RingCopier& copier) { return copier.holds(address, bytes); });
}

std::uint64_t GpuCopiers::served() const {
  std::uint64_t sum = 0;
  for (const auto& copier : copiers_) {
    if (const RingCopier* made = copier.load(std::memory_order_acquire)) sum += made->served();
  }
  return sum;
}

}  // namespace belfry::softnic
