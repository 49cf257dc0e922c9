#pragma once
/// \file
/// What the kernels of `residency` are given.

#include <cstdint>

#include "belfry/device/view.hpp"
#include "bench/kernels/jobs.hpp"

namespace belfry::bench {

enum class Caller : std::uint8_t {
  compute,    ///< multiplies and adds what it holds in registers
  streaming,  ///< adds up what it reads from memory
};

/// 16 B of input.
struct alignas(16) FourFloats {
  float x, y, z, w;
};

/// Of the compute caller, unrolled: a loop of few instructions runs as fast as its place in the code lets it.
inline constexpr std::uint32_t kStepsARound = 8;

/// What the kernel is there for. A block's work is `messages` parts of `rounds` rounds, and after each part
/// it may send.
struct ResidencyWork {
  const FourFloats* input = nullptr;  ///< streaming: [slice][N / 4][thread]
  std::uint32_t slices = 1;           ///< a power of two; round r reads slice r mod slices
  float factor = 1;                   ///< compute: each value becomes value * factor + addend
  float addend = 0;
  std::uint32_t rounds = 0;
  std::uint32_t messages = 0;
  float* output = nullptr;  ///< [thread]
};

/// Message m of block b is write b * messages + m: an 8 B value to a slot of its own, by the block's first
/// thread, on one of the queues or rings that all blocks share.
template <class View>
struct TalkOf {
  View view;
  std::uint32_t peer = 0;
  std::uint32_t queues = 1;
  std::uint32_t messages = 0;  ///< a block; 0: dormant, never sends
  device::Place target;
  std::uint64_t seed = 0;
  std::uint32_t* failed = nullptr;  ///< counts messages that were not sent, or not completed in time
};

/// How the kernel gets to the code that sends.
enum class Call : std::uint8_t {
  inlined,   ///< it is part of the kernel
  separate,  ///< it is a function of its own, and the kernel's values wait on the stack until it returns
};

}  // namespace belfry::bench
