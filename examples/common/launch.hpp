#pragma once
/// \file
/// Where kernels run and what memory they share with the host: CPU lanes and host memory, or a GPU with its
/// own memory and pinned host memory.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "belfry/host/device_endpoint.hpp"
#include "belfry/lanes/launch.hpp"
#include "common/gpu.hpp"
#include "common/program.hpp"
#include "common/report.hpp"

namespace belfry::examples {

/// An array that kernels and the host both reach, beside the windows.
template <class T>
class Shared {
 public:
  explicit Shared(const Pe& pe, std::size_t count = 1)
      : memory_(pe.shared_memory(count * sizeof(T))), items_(static_cast<T*>(memory_.get()), count) {
    std::uninitialized_value_construct(items_.begin(), items_.end());
  }
  T* get() { return items_.data(); }
  std::span<const T> span() const { return items_; }
  std::span<T> span() { return items_; }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  std::shared_ptr<void> memory_;
  std::span<T> items_;
};

/// Runs a kernel, a copy of it in each thread of the grid, and waits for its end. It has a member `report`.
/// Throws host::Error if it noted a failure, or the GPU did; lanes::LaunchError if lanes did not end as
/// kernels do.
template <class Kernel>
void launch(const Pe& pe, const char* name, lanes::Grid grid, Kernel kernel) {
  const auto* const report = kernel.report = new (pe.report_memory.get()) Report{};
  if (pe.on_gpu) {
#if defined(BELFRY_EXAMPLES_ON_GPU)
    launch_on_gpu(pe.gpu, grid.blocks, grid.threads, kernel);
#endif
  } else {
    lanes::LaunchOptions options;
    options.name = name;
    options.deadline = pe.launch_deadline();
    lanes::launch(grid, options, kernel);
  }
  throw_if_failed(*report);
}

/// Copies into this PE's copy of a window, and out of it.
/// \param endpoint a DeviceEndpoint, or a transport of common/transport.hpp
template <class T, class Host>
void copy_in(const Pe& pe, const Host& endpoint, std::uint32_t window, std::span<const T> items) {
  pe.window_memory->write(endpoint.windows().memory(window).data(), items.data(), items.size_bytes());
}
template <class T, class Host>
std::vector<T> copy_out(const Pe& pe, const Host& endpoint, std::uint32_t window, std::size_t count) {
  std::vector<T> items(count);
  pe.window_memory->read(items.data(), endpoint.windows().memory(window).data(), count * sizeof(T));
  return items;
}

}  // namespace belfry::examples
