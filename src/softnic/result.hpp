#pragma once
/// \file
/// A value or an errno, for the kernel's side of verbs, which never throws.

#include <utility>

namespace belfry::softnic {

struct Errno {
  int code;  ///< positive errno
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Errno e) : error_(e.code) {}

  explicit operator bool() const { return error_ == 0; }
  int error() const { return error_; }  ///< 0 or a positive errno
  const T& operator*() const { return value_; }
  T& operator*() { return value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_{};
  int error_ = 0;
};

}  // namespace belfry::softnic
