#pragma once
/// \file
/// What somebody knows of the memory: for each cell the oldest message that may still be read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "check/hash.hpp"

namespace belfry::check {

/// Place of a message in the order of its line. Later is greater; 0 is the initial contents. 16 bits, so
/// that a view is small and a join of two is a few vector instructions.
using Stamp = std::int16_t;

class View {
 public:
  explicit View(std::size_t cells = 0) : stamps_(cells, 0) {}

  Stamp operator[](std::size_t cell) const { return stamps_[cell]; }
  std::size_t size() const { return stamps_.size(); }
  void raise(std::size_t cell, Stamp to) {
    if (stamps_[cell] < to) stamps_[cell] = to;
  }
  /// What either of the two knows.
  void join(const View& other) {
    for (std::size_t i = 0; i < stamps_.size(); ++i)
      stamps_[i] = stamps_[i] < other.stamps_[i] ? other.stamps_[i] : stamps_[i];
  }
  /// The same for the cells that are marked.
  void join_where(const View& other, const std::vector<bool>& marked) {
    for (std::size_t i = 0; i < stamps_.size(); ++i)
      if (marked[i] && stamps_[i] < other.stamps_[i]) stamps_[i] = other.stamps_[i];
  }
  std::uint64_t hash() const {
    // Four stamps at a time: a state is hashed at each step.
    std::uint64_t hash = stamps_.size();
    for (std::size_t i = 0; i < stamps_.size(); i += 4) {
      std::uint64_t four = 0;
      std::memcpy(&four, &stamps_[i], std::min<std::size_t>(4, stamps_.size() - i) * sizeof(Stamp));
      hash = (hash ^ four) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
  /// Whether it knows all that the other one knows.
  bool covers(const View& other) const {
    for (std::size_t i = 0; i < stamps_.size(); ++i)
      if (stamps_[i] < other.stamps_[i]) return false;
    return true;
  }

 private:
  std::vector<Stamp> stamps_;
};

using SharedView = std::shared_ptr<const View>;

}  // namespace belfry::check
