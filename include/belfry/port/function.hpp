#pragma once
/// \file
/// BELFRY_FN marks a function that compiles for the host and, under nvcc, for the device as well.
/// The `#if` for a device is only ever inside function bodies; this marker is the one exception a
/// declaration needs. BELFRY_INLINE_FN does so for one that must become part of its caller: where what it is
/// given would otherwise go through memory, and only the caller knows most of it. BELFRY_SLOW_FN marks a wait
/// that a fast path seldom takes: on a CPU it stays a call, and costs the fast path no registers.

#if defined(__CUDACC__)
#define BELFRY_FN __host__ __device__
#define BELFRY_INLINE_FN __host__ __device__ __forceinline__
#define BELFRY_SLOW_FN __host__ __device__ inline
#else
#define BELFRY_FN
#define BELFRY_INLINE_FN inline __attribute__((always_inline))
#define BELFRY_SLOW_FN inline __attribute__((noinline, cold))
#endif

/// `a BELFRY_AND b` is a && b of conditions that both may be computed. A CPU foresees where a branch goes,
/// and computes no more than it has to; for a GPU's thread a branch costs as much as ten comparisons.
/// BELFRY_FOR_GPU is for what else is faster another way on each, and right both ways.
#if defined(__CUDA_ARCH__)
#define BELFRY_AND &
#define BELFRY_FOR_GPU true
#else
#define BELFRY_AND &&
#define BELFRY_FOR_GPU false
#endif
