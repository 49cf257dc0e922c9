#pragma once
/// \file
/// Numbered objects. A freed number is handed out again as late as possible, so that a stale number
/// (a CQN in a doorbell, a QPN at a peer) rarely names a stranger.

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace belfry::softnic {

template <class T>
class SlotTable {
 public:
  /// Numbers run from `first` to `first + capacity - 1`.
  SlotTable(std::uint32_t first, std::uint32_t capacity) : first_(first), capacity_(capacity) {}

  std::uint32_t size() const { return used_; }

  /// Stores the object and tells it its number. \return it, or null where the table is full
  T* insert(std::unique_ptr<T> object) {
    std::uint32_t row;
    if (slots_.size() < capacity_ && free_.size() <= kKeptBack) {
      row = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else if (!free_.empty()) {
      row = free_.front();
      free_.pop_front();
    } else {
      return nullptr;
    }
    ++used_;
    object->number = first_ + row;
    slots_[row] = std::move(object);
    return slots_[row].get();
  }

  T* find(std::uint32_t number) const {
    const std::uint32_t row = number - first_;
    return row < slots_.size() ? slots_[row].get() : nullptr;
  }

  /// \return false where there is no such object
  bool erase(std::uint32_t number) {
    if (!find(number)) return false;
    slots_[number - first_].reset();
    free_.push_back(number - first_);
    --used_;
    return true;
  }

  template <class F>
  void for_each(F&& f) const {
    for (const auto& slot : slots_)
      if (slot) f(*slot);
  }

 private:
  // A fresh number is preferred until this many freed ones wait.
  static constexpr std::size_t kKeptBack = 256;

  std::uint32_t first_;
  std::uint32_t capacity_;
  std::uint32_t used_ = 0;
  std::vector<std::unique_ptr<T>> slots_;
  std::deque<std::uint32_t> free_;
};

}  // namespace belfry::softnic
