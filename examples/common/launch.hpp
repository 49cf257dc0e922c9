#pragma once
/// \file
/// Where kernels run and what memory they share with the host: CPU lanes and host memory. All that an example
/// would change to run on a GPU is here.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "belfry/host/device_endpoint.hpp"
#include "belfry/lanes/launch.hpp"
#include "common/program.hpp"
#include "common/report.hpp"

namespace belfry::examples {

/// An array that kernels and the host both reach, beside the windows.
template <class T>
class Shared {
 public:
  explicit Shared(std::size_t count = 1) : items_(count) {}
  T* get() { return items_.data(); }
  std::span<const T> span() const { return items_; }
  std::span<T> span() { return items_; }

 private:
  std::vector<T> items_;
};

/// Runs a kernel, a copy of it in each thread of the grid, and waits for its end. It has a member `report`.
/// Throws host::Error if it noted a failure, lanes::LaunchError if it did not end as kernels do.
template <class Kernel>
void launch(const Pe& pe, const char* name, lanes::Grid grid, Kernel kernel) {
  Shared<Report> report;
  kernel.report = report.get();
  lanes::LaunchOptions options;
  options.name = name;
  options.deadline = pe.launch_deadline();
  lanes::launch(grid, options, kernel);
  throw_if_failed(report.span().front());
}

/// Copies into this PE's copy of a window, and out of it.
/// \param endpoint a DeviceEndpoint, or a transport of common/transport.hpp
template <class T, class Host>
void copy_in(const Host& endpoint, std::uint32_t window, std::span<const T> items) {
  const auto bytes = std::as_bytes(items);
  std::copy(bytes.begin(), bytes.end(), endpoint.windows().memory(window).data());
}
template <class T, class Host>
std::vector<T> copy_out(const Host& endpoint, std::uint32_t window, std::size_t count) {
  std::vector<T> items(count);
  const std::byte* from = endpoint.windows().memory(window).data();
  std::copy(from, from + count * sizeof(T), std::as_writable_bytes(std::span(items)).begin());
  return items;
}

}  // namespace belfry::examples
