#pragma once
/// \file
/// Fences of one direction. A whole fence (fence.acq_rel) costs an H200 600 cycles even with nothing under
/// way, and empties the L1; half of one is enough wherever the engine waits or tells.

#include "belfry/port/memory.hpp"

namespace belfry::softnic::cuda {

using port::Scope;

// fence.acquire and fence.release came with PTX ISA 8.6.
#if defined(__CUDACC_VER_MAJOR__) && (__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1207) && \
    defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define BELFRY_ENGINE_HALF_FENCES 1
#endif

/// How far the stores since the last fence reach: what the next one has to be.
enum class Reach : std::uint32_t { none, gpu, system };

__device__ inline Reach wider(Reach a, Reach b) { return a < b ? b : a; }

/// What follows sees what whoever stored the values that were just polled had stored before.
/// \param far whether some of it may lie outside this GPU's memory
__device__ inline void acquire_fence([[maybe_unused]] bool far) {
#if defined(BELFRY_ENGINE_HALF_FENCES)
  asm volatile("fence.acquire.sys;" ::: "memory");
#else
  if (far) return port::fence<Scope::system>();
  port::fence<Scope::gpu>();
#endif
}

/// What was stored before is seen before what is stored from here on.
__device__ inline void release_fence(Reach reach) {
#if defined(BELFRY_ENGINE_HALF_FENCES)
  if (reach == Reach::gpu) asm volatile("fence.release.gpu;" ::: "memory");
  if (reach == Reach::system) asm volatile("fence.release.sys;" ::: "memory");
#else
  if (reach == Reach::gpu) port::fence<Scope::gpu>();
  if (reach == Reach::system) port::fence<Scope::system>();
#endif
}

#undef BELFRY_ENGINE_HALF_FENCES

}  // namespace belfry::softnic::cuda
