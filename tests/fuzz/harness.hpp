#pragma once
/// \file
/// What a fuzz harness gives: the function that libFuzzer calls, and seeds made by code, so that a
/// corpus never goes stale. An input is a little program: a harness reads choices from it one after
/// the other, and an input that has ended reads as zeros.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace belfry::fuzz {

using Bytes = std::vector<std::uint8_t>;

/// Inputs that reach deep states; each harness defines it.
std::vector<Bytes> seeds();

/// Aborts where a correct program no longer does what it did when its seed was written: such a harness
/// still runs, and tests nothing but refusals. Each harness defines it; the replay program calls it.
void check_reach();

/// Says what was lost, and aborts.
inline void expect_reached(bool reached, const char* what) {
  if (reached) return;
  std::fprintf(stderr, "the seeds no longer reach: %s\n", what);
  std::abort();
}

/// Says which promise was broken, and aborts, so that libFuzzer keeps the input.
template <class T>
void require(const T& kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

/// Reads an input from front to back.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }

  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    take(&value, sizeof(T));
    return value;
  }
  std::uint8_t byte() { return get<std::uint8_t>(); }

  /// One of `count` choices.
  unsigned pick(unsigned count) { return byte() % count; }

  void take(void* to, std::size_t bytes) {
    const std::size_t n = bytes < rest_.size() ? bytes : rest_.size();
    if (n != 0) std::memcpy(to, rest_.data(), n);
    if (n != bytes) std::memset(static_cast<std::uint8_t*>(to) + n, 0, bytes - n);
    rest_ = rest_.subspan(n);
  }

 private:
  std::span<const std::uint8_t> rest_;
};

/// Writes an input in the order in which a Reader reads it.
class Writer {
 public:
  template <class T>
  Writer& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  Writer& bytes(std::initializer_list<int> values) {
    for (const int v : values) bytes_.push_back(static_cast<std::uint8_t>(v));
    return *this;
  }
  const Bytes& done() const { return bytes_; }

 private:
  Bytes bytes_;
};

}  // namespace belfry::fuzz
