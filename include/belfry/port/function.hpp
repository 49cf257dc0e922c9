#pragma once
/// \file
/// BELFRY_FN marks a function that compiles for the host and, under nvcc, for the device as well.
/// The `#if` for a device is only ever inside function bodies; this marker is the one exception a
/// declaration needs.

#if defined(__CUDACC__)
#define BELFRY_FN __host__ __device__
#else
#define BELFRY_FN
#endif
