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

  /// \return the number, or 0xffffffff where the table is full
  std::uint32_t insert(std::unique_ptr<T> object) {
    std::uint32_t row;
    if (slots_.size() < capacity_ && free_.size() <= reserve()) {
      row = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back(std::move(object));
    } else if (!free_.empty()) {
      row = free_.front();
      free_.pop_front();
      slots_[row] = std::move(object);
    } else {
      return kNone;
    }
    ++used_;
    return first_ + row;
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

  static constexpr std::uint32_t kNone = 0xffffffffu;

 private:
  // Prefer a fresh number until this many freed ones wait.
  static constexpr std::size_t reserve() { return 256; }

  std::uint32_t first_;
  std::uint32_t capacity_;
  std::uint32_t used_ = 0;
  std::vector<std::unique_ptr<T>> slots_;
  std::deque<std::uint32_t> free_;
};

}  // namespace belfry::softnic
