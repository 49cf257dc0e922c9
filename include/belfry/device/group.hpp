#pragma once
/// \file
/// Who makes a call together. The forms of every operation differ in their first argument only.

#include <cstdint>

#include "belfry/port/lane.hpp"

namespace belfry::device {

/// The calling thread alone.
struct Thread {};

/// All lanes of `mask`, together and with the same arguments: one operation for all of them, that covers
/// what each of them stored before. Every lane gets the result.
struct Warp {
  std::uint32_t mask = port::kFullWarp;
};

/// All threads of the block, together and with the same arguments. Every thread gets whether it succeeded;
/// thread 0 has the operation and its details, and waits for it in the Block form; alone, the others get
/// bad_argument.
struct Block {};

}  // namespace belfry::device
