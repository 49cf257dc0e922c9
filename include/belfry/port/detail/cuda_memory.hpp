#pragma once
/// \file
/// port/memory.hpp on a GPU: PTX memory instructions with explicit order and scope, on generic addresses.
/// Source: PTX ISA, ld, st, fence, atom. Needs compute capability 7.0.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "belfry/port/function.hpp"
#include "belfry/port/scope.hpp"
#include "belfry/port/vector.hpp"

namespace belfry::port::cuda_memory {

template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 8, std::uint64_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                          std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

template <class T>
BELFRY_FN Bits<T> to_bits(const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) == sizeof(Bits<T>));
  Bits<T> b;
  memcpy(&b, &value, sizeof b);
  return b;
}
template <class T>
BELFRY_FN T from_bits(Bits<T> b) {
  T value;
  memcpy(&value, &b, sizeof value);
  return value;
}

// One instruction for each scope; the branch is decided when it is compiled. Where nvcc compiles for the
// host, these bodies are empty: nobody calls them there.
#if defined(__CUDA_ARCH__)
#define BELFRY_PTX_FOR_SCOPE(scope, before, after, ...) \
  if constexpr ((scope) == Scope::block) {              \
    asm volatile(before ".cta" after __VA_ARGS__);      \
  } else if constexpr ((scope) == Scope::gpu) {         \
    asm volatile(before ".gpu" after __VA_ARGS__);      \
  } else {                                              \
    asm volatile(before ".sys" after __VA_ARGS__);      \
  }
#else
#define BELFRY_PTX_FOR_SCOPE(scope, before, after, ...)
#endif

namespace detail {

template <Scope scope, bool acquire, class T>
BELFRY_FN T load(const T* at) {
  Bits<T> b{};
  if constexpr (sizeof(T) == 8) {
    if constexpr (acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "ld.acquire", ".u64 %0, [%1];", : "=l"(b) : "l"(at) : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "ld.relaxed", ".u64 %0, [%1];", : "=l"(b) : "l"(at) : "memory")
    }
  } else if constexpr (sizeof(T) == 4) {
    if constexpr (acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "ld.acquire", ".u32 %0, [%1];", : "=r"(b) : "l"(at) : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "ld.relaxed", ".u32 %0, [%1];", : "=r"(b) : "l"(at) : "memory")
    }
  } else if constexpr (sizeof(T) == 2) {
    if constexpr (acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "ld.acquire", ".u16 %0, [%1];", : "=h"(b) : "l"(at) : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "ld.relaxed", ".u16 %0, [%1];", : "=h"(b) : "l"(at) : "memory")
    }
  } else {
    std::uint16_t wide = 0;  // PTX has no 8 bit registers
    if constexpr (acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "ld.acquire", ".u8 %0, [%1];", : "=h"(wide) : "l"(at) : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "ld.relaxed", ".u8 %0, [%1];", : "=h"(wide) : "l"(at) : "memory")
    }
    b = static_cast<Bits<T>>(wide);
  }
  static_cast<void>(at);
  return from_bits<T>(b);
}

template <Scope scope, bool release, class T>
BELFRY_FN void store(T* at, T value) {
  [[maybe_unused]] const Bits<T> b = to_bits(value);
  if constexpr (sizeof(T) == 8) {
    if constexpr (release) {
      BELFRY_PTX_FOR_SCOPE(scope, "st.release", ".u64 [%0], %1;", ::"l"(at), "l"(b) : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "st.relaxed", ".u64 [%0], %1;", ::"l"(at), "l"(b) : "memory")
    }
  } else if constexpr (sizeof(T) == 4) {
    if constexpr (release) {
      BELFRY_PTX_FOR_SCOPE(scope, "st.release", ".u32 [%0], %1;", ::"l"(at), "r"(b) : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "st.relaxed", ".u32 [%0], %1;", ::"l"(at), "r"(b) : "memory")
    }
  } else {
    static_assert(sizeof(T) == 2, "bytes are not stored one by one");
    if constexpr (release) {
      BELFRY_PTX_FOR_SCOPE(scope, "st.release", ".u16 [%0], %1;", ::"l"(at), "h"(b) : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "st.relaxed", ".u16 [%0], %1;", ::"l"(at), "h"(b) : "memory")
    }
  }
  static_cast<void>(at);
}

}  // namespace detail

template <Scope scope, class T>
BELFRY_FN T load(const T* at) {
  return detail::load<scope, false>(at);
}
template <Scope scope, class T>
BELFRY_FN T load_acquire(const T* at) {
  return detail::load<scope, true>(at);
}
template <Scope scope, class T>
BELFRY_FN void store(T* at, T value) {
  detail::store<scope, false>(at, value);
}
template <Scope scope, class T>
BELFRY_FN void store_release(T* at, T value) {
  detail::store<scope, true>(at, value);
}

template <Scope scope>
BELFRY_FN void fence() {
  BELFRY_PTX_FOR_SCOPE(scope, "fence.acq_rel", ";", ::: "memory")
}

template <Scope scope, Order order, class T>
BELFRY_FN T fetch_add(T* at, T value) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  T before{};
  if constexpr (sizeof(T) == 8) {
    if constexpr (order == Order::relaxed) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.relaxed", ".add.u64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else if constexpr (order == Order::acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acquire", ".add.u64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else if constexpr (order == Order::release) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.release", ".add.u64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acq_rel", ".add.u64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    }
  }
  if constexpr (sizeof(T) == 4) {
    if constexpr (order == Order::relaxed) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.relaxed", ".add.u32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else if constexpr (order == Order::acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acquire", ".add.u32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else if constexpr (order == Order::release) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.release", ".add.u32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acq_rel", ".add.u32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    }
  }
  static_cast<void>(at);
  static_cast<void>(value);
  return before;
}

template <Scope scope, Order order, class T>
BELFRY_FN T fetch_max(T* at, T value) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  T before{};
  if constexpr (sizeof(T) == 8) {
    if constexpr (order == Order::relaxed) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.relaxed", ".max.u64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else if constexpr (order == Order::acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acquire", ".max.u64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else if constexpr (order == Order::release) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.release", ".max.u64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acq_rel", ".max.u64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    }
  }
  if constexpr (sizeof(T) == 4) {
    if constexpr (order == Order::relaxed) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.relaxed", ".max.u32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else if constexpr (order == Order::acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acquire", ".max.u32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else if constexpr (order == Order::release) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.release", ".max.u32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acq_rel", ".max.u32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    }
  }
  static_cast<void>(at);
  static_cast<void>(value);
  return before;
}

template <Scope scope, Order order, class T>
BELFRY_FN T exchange(T* at, T value) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  T before{};
  if constexpr (sizeof(T) == 8) {
    if constexpr (order == Order::relaxed) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.relaxed", ".exch.b64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else if constexpr (order == Order::acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acquire", ".exch.b64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else if constexpr (order == Order::release) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.release", ".exch.b64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acq_rel", ".exch.b64 %0, [%1], %2;",
                           : "=l"(before)
                           : "l"(at), "l"(value)
                           : "memory")
    }
  }
  if constexpr (sizeof(T) == 4) {
    if constexpr (order == Order::relaxed) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.relaxed", ".exch.b32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else if constexpr (order == Order::acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acquire", ".exch.b32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else if constexpr (order == Order::release) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.release", ".exch.b32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acq_rel", ".exch.b32 %0, [%1], %2;",
                           : "=r"(before)
                           : "l"(at), "r"(value)
                           : "memory")
    }
  }
  static_cast<void>(at);
  static_cast<void>(value);
  return before;
}

template <Scope scope, Order order, class T>
BELFRY_FN T compare_exchange(T* at, T expected, T desired) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  T before{};
  if constexpr (sizeof(T) == 8) {
    if constexpr (order == Order::relaxed) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.relaxed", ".cas.b64 %0, [%1], %2, %3;",
                           : "=l"(before)
                           : "l"(at), "l"(expected), "l"(desired)
                           : "memory")
    } else if constexpr (order == Order::acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acquire", ".cas.b64 %0, [%1], %2, %3;",
                           : "=l"(before)
                           : "l"(at), "l"(expected), "l"(desired)
                           : "memory")
    } else if constexpr (order == Order::release) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.release", ".cas.b64 %0, [%1], %2, %3;",
                           : "=l"(before)
                           : "l"(at), "l"(expected), "l"(desired)
                           : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acq_rel", ".cas.b64 %0, [%1], %2, %3;",
                           : "=l"(before)
                           : "l"(at), "l"(expected), "l"(desired)
                           : "memory")
    }
  }
  if constexpr (sizeof(T) == 4) {
    if constexpr (order == Order::relaxed) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.relaxed", ".cas.b32 %0, [%1], %2, %3;",
                           : "=r"(before)
                           : "l"(at), "r"(expected), "r"(desired)
                           : "memory")
    } else if constexpr (order == Order::acquire) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acquire", ".cas.b32 %0, [%1], %2, %3;",
                           : "=r"(before)
                           : "l"(at), "r"(expected), "r"(desired)
                           : "memory")
    } else if constexpr (order == Order::release) {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.release", ".cas.b32 %0, [%1], %2, %3;",
                           : "=r"(before)
                           : "l"(at), "r"(expected), "r"(desired)
                           : "memory")
    } else {
      BELFRY_PTX_FOR_SCOPE(scope, "atom.acq_rel", ".cas.b32 %0, [%1], %2, %3;",
                           : "=r"(before)
                           : "l"(at), "r"(expected), "r"(desired)
                           : "memory")
    }
  }
  static_cast<void>(at);
  static_cast<void>(expected);
  static_cast<void>(desired);
  return before;
}

BELFRY_FN inline void store_segment(void* at, Vector16 value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.v2.b64 [%0], {%1, %2};" ::"l"(at), "l"(value.low), "l"(value.high) : "memory");
#endif
  static_cast<void>(at);
  static_cast<void>(value);
}

BELFRY_FN inline void store_16(Vector16* at, Vector16 value) {
#if defined(__CUDA_ARCH__)
  asm volatile(
      "{\n\t.reg .b128 v;\n\t"
      "mov.b128 v, {%1, %2};\n\t"
      "st.relaxed.sys.b128 [%0], v;\n\t}" ::"l"(at),
      "l"(value.low), "l"(value.high)
      : "memory");
#endif
  static_cast<void>(at);
  static_cast<void>(value);
}
BELFRY_FN inline Vector16 load_16(const Vector16* at) {
  Vector16 value{};
#if defined(__CUDA_ARCH__)
  asm volatile(
      "{\n\t.reg .b128 v;\n\t"
      "ld.relaxed.sys.b128 v, [%2];\n\t"
      "mov.b128 {%0, %1}, v;\n\t}"
      : "=l"(value.low), "=l"(value.high)
      : "l"(at)
      : "memory");
#endif
  static_cast<void>(at);
  return value;
}

BELFRY_FN inline void store_doorbell(std::uint64_t* at, std::uint64_t value) {
  store<Scope::system>(at, value);
}

#undef BELFRY_PTX_FOR_SCOPE

}  // namespace belfry::port::cuda_memory
