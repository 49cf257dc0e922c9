#pragma once
/// \file
/// What a policy needs of the queues that it is used on. Setup compares it with what is there, and refuses
/// a pairing that could lose data.

#include <cstdint>

#include "belfry/device/view.hpp"

namespace belfry::device {

struct Requirements {
  DoorbellMode doorbell_mode = DoorbellMode::record;
  CompletionLayout completion_layout = CompletionLayout::collapsed;
  /// Assumption A1: queue, record and payload lie in the memory of the processor that writes them, whose
  /// cache serves the NIC's reads, so that a fence of that processor's scope is enough.
  bool own_memory = false;
  /// Assumption A2: the NIC acts only on doorbells, never on a doorbell record that it happens to read.
  bool doorbell_only = false;
  std::uint32_t max_inline = 0;  ///< bytes
};

}  // namespace belfry::device
