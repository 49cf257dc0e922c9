#pragma once
/// \file
/// port/memory.hpp under the checker: takes the place of port/detail/host_memory.hpp.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "belfry/port/scope.hpp"
#include "belfry/port/vector.hpp"
#include "check/access.hpp"

namespace belfry::port::host_memory {

template <class T>
std::uint64_t to_bits(const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <Scope scope, class T>
T load(const T* at) {
  return from_bits<T>(check::do_load(at, sizeof(T), scope, false, false));
}
template <Scope scope, class T>
T load_acquire(const T* at) {
  return from_bits<T>(check::do_load(at, sizeof(T), scope, true, false));
}
template <Scope scope, class T>
T poll(const T* at) {
  return from_bits<T>(check::do_load(at, sizeof(T), scope, false, true));
}
template <Scope scope, class T>
void store(T* at, T value) {
  check::do_store(at, sizeof(T), to_bits(value), scope, false, true);
}
template <Scope scope, class T>
void store_release(T* at, T value) {
  check::do_store(at, sizeof(T), to_bits(value), scope, true, true);
}

template <Scope scope>
void fence() {
  check::do_fence(scope);
}
inline void thread_fence() { check::do_fence_sequential(Scope::gpu); }

template <Scope scope, Order order, class T>
T fetch_add(T* at, T add) {
  return from_bits<T>(check::do_modify(at, sizeof(T), check::Modify::add, scope, order, to_bits(add), 0));
}
template <Scope scope, Order order, class T>
T exchange(T* at, T value) {
  return from_bits<T>(
      check::do_modify(at, sizeof(T), check::Modify::exchange, scope, order, to_bits(value), 0));
}
template <Scope scope, Order order, class T>
T compare_exchange(T* at, T expected, T desired) {
  return from_bits<T>(check::do_modify(at, sizeof(T), check::Modify::compare_exchange, scope, order,
                                       to_bits(desired), to_bits(expected)));
}
template <Scope scope, Order order, class T>
T fetch_max(T* at, T value) {
  return from_bits<T>(check::do_modify(at, sizeof(T), check::Modify::max, scope, order, to_bits(value), 0));
}

/// Weak, and in two halves: nothing says that somebody else sees both at once.
inline void store_segment(void* at, Vector16 value) {
  auto* word = static_cast<std::uint64_t*>(at);
  check::do_store(word, 8, value.low, Scope::system, false, false);
  check::do_store(word + 1, 8, value.high, Scope::system, false, false);
}

inline void store_16(Vector16* at, Vector16 value) { check::do_store_16(at, value.low, value.high); }
inline Vector16 load_16(const Vector16* at) {
  std::uint64_t value[2];
  check::do_load_16(at, value);
  return {value[0], value[1]};
}

inline void store_doorbell(std::uint64_t* at, std::uint64_t value) { check::do_store_doorbell(at, value); }
template <Scope scope>
void store_doorbell_release(std::uint64_t* at, std::uint64_t value) {
  check::do_store(at, 8, value, scope, true, true);
}

}  // namespace belfry::port::host_memory
