#pragma once
/// \file
/// port/memory.hpp on a CPU: C++ atomics. Scopes are all one here.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "belfry/port/lane.hpp"
#include "belfry/port/scope.hpp"
#include "belfry/port/vector.hpp"

#if defined(__SANITIZE_THREAD__)
#define BELFRY_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BELFRY_TSAN 1
#endif
#endif
#if defined(BELFRY_TSAN)
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace belfry::port::host_memory {

/// The integer of a type's size: what the builtins take.
template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 8, std::uint64_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                          std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

template <class T>
Bits<T>* bits(T* at) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) == sizeof(Bits<T>));
  return reinterpret_cast<Bits<T>*>(at);
}
template <class T>
const Bits<T>* bits(const T* at) {
  return reinterpret_cast<const Bits<T>*>(at);
}
template <class T>
Bits<T> to_bits(const T& value) {
  Bits<T> b;
  std::memcpy(&b, &value, sizeof b);
  return b;
}
template <class T>
T from_bits(Bits<T> b) {
  T value;
  std::memcpy(static_cast<void*>(&value), &b, sizeof value);
  return value;
}

constexpr int builtin_order(Order order) {
  return order == Order::relaxed   ? __ATOMIC_RELAXED
         : order == Order::acquire ? __ATOMIC_ACQUIRE
         : order == Order::release ? __ATOMIC_RELEASE
                                   : __ATOMIC_ACQ_REL;
}

#if defined(BELFRY_TSAN)
/// Where this thread's latest relaxed loads were: a fence after them acquires what was released there, also
/// by somebody who uses C++ atomics and not the shim (a NIC). TSan does not know fences, and is told so.
// The lanes of a warp share them, being threads of their own to TSan, so it must not look in here.
struct LatestLoads {
  static constexpr unsigned kCount = 8;
  void* at[kCount] = {};
  unsigned next = 0;
};
__attribute__((no_sanitize("thread"))) inline LatestLoads& latest_loads() {
  static thread_local LatestLoads loads;
  return loads;
}
__attribute__((no_sanitize("thread"))) inline void note_load(const void* at) {
  LatestLoads& loads = latest_loads();
  loads.at[loads.next++ % LatestLoads::kCount] = const_cast<void*>(at);
}
__attribute__((no_sanitize("thread"))) inline void acquire_latest_loads() {
  for (void*& at : latest_loads().at) {
    if (at != nullptr) __tsan_acquire(at);
    at = nullptr;
  }
}
/// Whether this thread's next relaxed store comes behind a fence, and so stands for what came before that.
__attribute__((no_sanitize("thread"))) inline bool& stores_behind_fence() {
  static thread_local bool is_behind = false;
  return is_behind;
}
__attribute__((no_sanitize("thread"))) inline bool takes_store_behind_fence() {
  const bool is_behind = stores_behind_fence();
  stores_behind_fence() = false;
  return is_behind;
}
__attribute__((no_sanitize("thread"))) inline void note_fence() { stores_behind_fence() = true; }

/// A doorbell register has two addresses in a process, for the program and the software NIC map it each for
/// itself, and TSan takes them for two. So both name what is released there by the QP, which a doorbell has
/// in its upper half: an address where nothing lies.
inline void* doorbell_tag(std::uint64_t value) {
  constexpr std::uintptr_t kNothingHere = 0x1000000000;
  return reinterpret_cast<void*>(kNothingHere + (value >> 32) * 8);
}
#endif

/// Said by a NIC that has found a doorbell: what came before it was rung comes before what the NIC does now.
/// The load that found it says so to everybody but TSan.
inline void note_doorbell([[maybe_unused]] std::uint64_t value) {
#if defined(BELFRY_TSAN)
  __tsan_acquire(doorbell_tag(value));
#endif
}

/// Said by a NIC that has read WQEs and will not again: whoever stores segments there next comes after it. In
/// between lies a completion, which that store depends on, and processors keep a store behind what it depends
/// on; TSan does not know that.
inline void note_read([[maybe_unused]] const unsigned char* at, [[maybe_unused]] std::uint32_t bytes) {
#if defined(BELFRY_TSAN)
  for (std::uint32_t i = 0; i < bytes; i += sizeof(Vector16))
    __tsan_release(const_cast<unsigned char*>(at + i));
#endif
}

template <Scope, class T>
T load(const T* at) {
#if defined(BELFRY_TSAN)
  note_load(at);
#endif
  return from_bits<T>(__atomic_load_n(bits(at), __ATOMIC_RELAXED));
}
template <Scope, class T>
T load_acquire(const T* at) {
  return from_bits<T>(__atomic_load_n(bits(at), __ATOMIC_ACQUIRE));
}
template <Scope scope, class T>
T poll(const T* at) {
  pause_lane();
  return load<scope>(at);
}
template <Scope, class T>
void store(T* at, T value) {
#if defined(BELFRY_TSAN)
  if (takes_store_behind_fence()) return __atomic_store_n(bits(at), to_bits(value), __ATOMIC_RELEASE);
#endif
  __atomic_store_n(bits(at), to_bits(value), __ATOMIC_RELAXED);
}
template <Scope, class T>
void store_release(T* at, T value) {
  __atomic_store_n(bits(at), to_bits(value), __ATOMIC_RELEASE);
}

/// TSan does not know fences. It is told that each fence of the process happens after the fences before
/// it: more than is true, so that it may miss a race between fenced threads, but never invents one. And that
/// a fence acquires what the loads before it have found, and that the store behind it releases.
inline void full_fence(int order) {
#if defined(BELFRY_TSAN)
  static char all_fences;
  __tsan_release(&all_fences);
  __tsan_acquire(&all_fences);
  acquire_latest_loads();
  note_fence();
  static_cast<void>(order);
#else
  __atomic_thread_fence(order);
#endif
}
template <Scope>
void fence() {
  full_fence(__ATOMIC_ACQ_REL);
}
inline void thread_fence() { full_fence(__ATOMIC_SEQ_CST); }

template <Scope, Order order, class T>
T fetch_add(T* at, T add) {
  return __atomic_fetch_add(at, add, builtin_order(order));
}
template <Scope, Order order, class T>
T exchange(T* at, T value) {
  return __atomic_exchange_n(at, value, builtin_order(order));
}
template <Scope, Order order, class T>
T compare_exchange(T* at, T expected, T desired) {
  static constexpr int kOnFailure =
      order == Order::acquire || order == Order::acquire_release ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED;
  __atomic_compare_exchange_n(at, &expected, desired, false, builtin_order(order), kOnFailure);
  return expected;
}
template <Scope scope, Order order, class T>
T fetch_max(T* at, T value) {
  T seen = load<scope>(at);
  while (seen < value) {
    const T before = compare_exchange<scope, order>(at, seen, value);
    if (before == seen) break;
    seen = before;
  }
  return seen;
}

inline void store_segment(void* at, Vector16 value) {
#if defined(BELFRY_TSAN)
  __tsan_acquire(at);
#endif
#if defined(__x86_64__)
  _mm_store_si128(static_cast<__m128i*>(at),
                  _mm_set_epi64x(static_cast<long long>(value.high), static_cast<long long>(value.low)));
#else
  std::memcpy(at, &value, sizeof value);
#endif
}

// Aligned 16 B vector accesses are single accesses on every CPU with AVX and, with LSE2, on aarch64. They are
// written as assembly, for no C++ type promises it; TSan cannot see them, and is told of the edge that users
// of a ring rely on: whoever loads what was stored has seen what came before the store.
inline void store_16(Vector16* at, Vector16 value) {
#if defined(BELFRY_TSAN)
  __tsan_release(at);
#endif
#if defined(__x86_64__)
  const __m128i v = _mm_set_epi64x(static_cast<long long>(value.high), static_cast<long long>(value.low));
  asm volatile("movdqa %1, %0" : "=m"(*at) : "x"(v) : "memory");
#elif defined(__aarch64__)
  asm volatile("stp %1, %2, %0" : "=Q"(*at) : "r"(value.low), "r"(value.high) : "memory");
#else
#error "16 B accesses are known for x86-64 and aarch64 only"
#endif
}
inline Vector16 load_16(const Vector16* at) {
  Vector16 value;
#if defined(__x86_64__)
  __m128i v;
  asm volatile("movdqa %1, %0" : "=x"(v) : "m"(*at) : "memory");
  _mm_store_si128(reinterpret_cast<__m128i*>(&value), v);
#elif defined(__aarch64__)
  asm volatile("ldp %0, %1, %2" : "=r"(value.low), "=r"(value.high) : "Q"(*at) : "memory");
#endif
#if defined(BELFRY_TSAN)
  __tsan_acquire(const_cast<Vector16*>(at));
#endif
  return value;
}

/// What precedes is seen first, and the store leaves a write-combining buffer at once.
inline void store_doorbell(std::uint64_t* at, std::uint64_t value) {
#if defined(BELFRY_TSAN)
  full_fence(__ATOMIC_RELEASE);
  __tsan_release(doorbell_tag(value));
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
#elif defined(__x86_64__)
  // x86 keeps stores to ordinary memory in order; for a write-combining register it takes sfence.
  _mm_sfence();
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
  _mm_sfence();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
template <Scope>
void store_doorbell_release(std::uint64_t* at, std::uint64_t value) {
  store_doorbell(at, value);
}

}  // namespace belfry::port::host_memory
