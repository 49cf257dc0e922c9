#pragma once
/// \file
/// Where the cases' kernels run, and memory that both they and the host see. On CPU lanes; another runner
/// (a GPU's) offers the same members.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "belfry/lanes/launch.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

class LanesRunner {
 public:
  /// Zero-initialised memory for reports and parameters.
  template <class T>
  class Array {
   public:
    explicit Array(std::size_t count) : items_(count) {}
    explicit Array(std::vector<T> items) : items_(std::move(items)) {}
    T* data() { return items_.data(); }
    std::size_t size() const { return items_.size(); }
    T& operator[](std::size_t i) { return items_[i]; }
    const T& operator[](std::size_t i) const { return items_[i]; }
    auto begin() { return items_.begin(); }
    auto end() { return items_.end(); }

   private:
    std::vector<T> items_;
  };

  /// Returns when all threads have ended. Throws what lanes::launch throws.
  template <class Kernel>
  static void launch(lanes::Grid grid, const Kernel& kernel,
                     std::chrono::nanoseconds deadline = std::chrono::seconds(110)) {
    lanes::LaunchOptions options;
    options.deadline = deadline;
    options.cooperative = true;
    lanes::launch(grid, options, kernel);
  }
};

using Runner = LanesRunner;
template <class T>
using Array = Runner::Array<T>;

}  // namespace belfry::conformance
