#pragma once
/// \file
/// Who has to see an access: the scopes of the PTX memory model that belfry uses.
/// Source: PTX ISA, "Memory Consistency Model".

#include <cstdint>

namespace belfry::port {

enum class Scope : std::uint8_t {
  block,   ///< threads of one block (.cta)
  gpu,     ///< threads of one GPU (.gpu)
  system,  ///< every GPU, the CPU and devices (.sys)
};

/// What an atomic read-modify-write orders beside itself.
enum class Order : std::uint8_t { relaxed, acquire, release, acquire_release };

}  // namespace belfry::port
