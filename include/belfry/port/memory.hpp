#pragma once
/// \file
/// Accesses to memory that another agent (a thread, a worker, a NIC) reads or writes at the same time. Every
/// queue, doorbell record, ring, counter and flag of belfry is touched through these functions only, so
/// that one source is right on a GPU, on CPU lanes and under the weak-memory checker.
///
/// A scope says how far an access has to be seen. On a CPU every scope is the system's. A type is 1, 2, 4 or
/// 8 B, trivially copyable and naturally aligned; read-modify-writes take 4 and 8 B integers.

#include <cstdint>

#include "belfry/port/function.hpp"
#include "belfry/port/scope.hpp"
#include "belfry/port/vector.hpp"

#if defined(BELFRY_PORT_MEMORY_HEADER)
#include BELFRY_PORT_MEMORY_HEADER  // the checker's memory, in place of the CPU's
#else
#include "belfry/port/detail/host_memory.hpp"
#endif
#if defined(__CUDACC__)
#include "belfry/port/detail/cuda_memory.hpp"
#endif

namespace belfry::port {

/// Orders nothing. For a value that somebody else changes, and of which nothing follows about other memory.
template <Scope scope, class T>
BELFRY_FN T load(const T* at) {
#if defined(__CUDA_ARCH__)
  return cuda_memory::load<scope>(at);
#else
  return host_memory::load<scope>(at);
#endif
}

/// What follows in the program happens after it.
template <Scope scope, class T>
BELFRY_FN T load_acquire(const T* at) {
#if defined(__CUDA_ARCH__)
  return cuda_memory::load_acquire<scope>(at);
#else
  return host_memory::load_acquire<scope>(at);
#endif
}

/// As load(), for loops that wait: a lane lets the other lanes of its warp run first. Fence once it hits:
/// acquiring with each turn would empty a GPU's L1 as often.
template <Scope scope, class T>
BELFRY_FN T poll(const T* at) {
#if defined(__CUDA_ARCH__)
  return cuda_memory::load<scope>(at);
#else
  return host_memory::poll<scope>(at);
#endif
}

template <Scope scope, class T>
BELFRY_FN void store(T* at, T value) {
#if defined(__CUDA_ARCH__)
  cuda_memory::store<scope>(at, value);
#else
  host_memory::store<scope>(at, value);
#endif
}

/// What precedes in the program, and what this thread has seen of others, is seen before it.
template <Scope scope, class T>
BELFRY_FN void store_release(T* at, T value) {
#if defined(__CUDA_ARCH__)
  cuda_memory::store_release<scope>(at, value);
#else
  host_memory::store_release<scope>(at, value);
#endif
}

/// Acquire and release in one (fence.acq_rel): stores before it are seen before stores after it, by all
/// within the scope; loads after it see what loads before it imply.
template <Scope scope>
BELFRY_FN void fence() {
#if defined(__CUDA_ARCH__)
  cuda_memory::fence<scope>();
#else
  host_memory::fence<scope>();
#endif
}

/// CUDA's __threadfence(): a sequentially consistent fence of GPU scope.
BELFRY_FN inline void thread_fence() {
#if defined(__CUDA_ARCH__)
  __threadfence();
#else
  host_memory::thread_fence();
#endif
}

/// \return the value before
template <Scope scope, Order order = Order::relaxed, class T>
BELFRY_FN T fetch_add(T* at, T add) {
#if defined(__CUDA_ARCH__)
  return cuda_memory::fetch_add<scope, order>(at, add);
#else
  return host_memory::fetch_add<scope, order>(at, add);
#endif
}

/// \return the value before
template <Scope scope, Order order = Order::relaxed, class T>
BELFRY_FN T fetch_max(T* at, T value) {
#if defined(__CUDA_ARCH__)
  return cuda_memory::fetch_max<scope, order>(at, value);
#else
  return host_memory::fetch_max<scope, order>(at, value);
#endif
}

/// \return the value before
template <Scope scope, Order order = Order::relaxed, class T>
BELFRY_FN T exchange(T* at, T value) {
#if defined(__CUDA_ARCH__)
  return cuda_memory::exchange<scope, order>(at, value);
#else
  return host_memory::exchange<scope, order>(at, value);
#endif
}

/// \return the value before: equal to `expected` where the exchange took place
template <Scope scope, Order order = Order::relaxed, class T>
BELFRY_FN T compare_exchange(T* at, T expected, T desired) {
#if defined(__CUDA_ARCH__)
  return cuda_memory::compare_exchange<scope, order>(at, expected, desired);
#else
  return host_memory::compare_exchange<scope, order>(at, expected, desired);
#endif
}

/// 16 B of a WQE in one store. It orders nothing, and another agent may see its halves apart until
/// something orders them: for memory that a doorbell announces.
BELFRY_FN inline void store_segment(void* at, Vector16 value) {
#if defined(__CUDA_ARCH__)
  cuda_memory::store_segment(at, value);
#else
  host_memory::store_segment(at, value);
#endif
}

/// 16 B in one store that is never seen in halves, of system scope (st.relaxed.sys.b128). It orders nothing
/// else.
BELFRY_FN inline void store_16(Vector16* at, Vector16 value) {
#if defined(__CUDA_ARCH__)
  cuda_memory::store_16(at, value);
#else
  host_memory::store_16(at, value);
#endif
}

/// 16 B in one load, of system scope. It orders nothing else.
BELFRY_FN inline Vector16 load_16(const Vector16* at) {
#if defined(__CUDA_ARCH__)
  return cuda_memory::load_16(at);
#else
  return host_memory::load_16(at);
#endif
}

/// Eight bytes to a doorbell register. Not a memory store: a register may be write-combining memory of a
/// device, so on a CPU what precedes is ordered before it and it is pushed out at once. On a GPU it is a
/// relaxed store of system scope, and ordering is the caller's.
BELFRY_FN inline void store_doorbell(std::uint64_t* at, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  cuda_memory::store_doorbell(at, value);
#else
  host_memory::store_doorbell(at, value);
#endif
}

/// The same with release semantics of the given scope (st.release).
template <Scope scope>
BELFRY_FN void store_doorbell_release(std::uint64_t* at, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  cuda_memory::store_release<scope>(at, value);
#else
  host_memory::store_doorbell_release<scope>(at, value);
#endif
}

}  // namespace belfry::port
