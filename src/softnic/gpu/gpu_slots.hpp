#pragma once
/// \file
/// Small numbers for what the GPU engine knows: the lowest that is free, so that its tables stay short.

#include <cstdint>
#include <vector>

namespace belfry::softnic {

class GpuSlots {
 public:
  std::uint32_t take() {
    std::uint32_t slot = 0;
    while (slot < used_.size() && used_[slot]) ++slot;
    if (slot == used_.size()) used_.push_back(false);
    used_[slot] = true;
    return slot;
  }
  void free(std::uint32_t slot) {
    used_[slot] = false;
    while (!used_.empty() && !used_.back()) used_.pop_back();
  }
  /// One more than the highest in use.
  std::uint32_t size() const { return static_cast<std::uint32_t>(used_.size()); }

 private:
  std::vector<bool> used_;
};

}  // namespace belfry::softnic
