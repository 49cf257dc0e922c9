#pragma once
/// \file
/// When the transport hears of an operation.

#include <cstdint>

namespace belfry::device {

/// Whether the transport is told at once.
enum class Announce : std::uint8_t {
  now,
  later,  ///< by a later operation of the queue, or by flush(): a batch shares one doorbell and one
          ///< completion
};

}  // namespace belfry::device
