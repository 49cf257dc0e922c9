#pragma once
/// \file
/// What waits its turn, oldest first, in one piece.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace belfry::proxy {

/// A queue whose elements lie in a row, so that a part of it is a span, and which reuses its memory: one that
/// stays short allocates no more after a while.
template <class T>
class Fifo {
 public:
  bool empty() const { return front_ == end_; }
  std::size_t size() const { return end_ - front_; }
  T& operator[](std::size_t i) { return items_[front_ + i]; }
  const T& operator[](std::size_t i) const { return items_[front_ + i]; }
  T& front() { return items_[front_]; }
  const T& front() const { return items_[front_]; }
  T& back() { return items_[end_ - 1]; }
  std::span<T> first(std::size_t count) { return {items_.get() + front_, count}; }
  const T* begin() const { return items_.get() + front_; }
  const T* end() const { return items_.get() + end_; }

  /// One more, to be filled in by the caller where it lies: it still has an earlier one's contents.
  T& add() {
    if (end_ == room_) grow();
    return items_[end_++];
  }
  void push_back(const T& item) { add() = item; }
  void pop_front(std::size_t count = 1) {
    front_ += count;
    if (front_ < size()) return;
    // Never more behind than in front: what is moved here, each pays for once.
    std::move(items_.get() + front_, items_.get() + end_, items_.get());
    end_ -= front_;
    front_ = 0;
  }
  void clear() { front_ = end_ = 0; }

 private:
  void grow() {
    room_ = std::max<std::size_t>(16, 2 * room_);
    auto more = std::make_unique<T[]>(room_);
    std::move(items_.get(), items_.get() + end_, more.get());
    items_ = std::move(more);
  }

  std::unique_ptr<T[]> items_;
  std::size_t room_ = 0;
  std::size_t front_ = 0;  ///< what lies before it is gone
  std::size_t end_ = 0;    ///< what lies from here on is not there yet
};

}  // namespace belfry::proxy
