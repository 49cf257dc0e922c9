#pragma once
/// \file
/// A send queue of one producer, written by hand: WQE, record and doorbell in the seven orderings of the
/// design, and nothing else. It tests the orderings themselves, apart from mini-gda.

#include "belfry/device/ordering.hpp"
#include "check/checks.hpp"
#include "check/explore.hpp"

namespace belfry::check {

struct ToyConfiguration {
  device::Ordering ordering = device::Ordering::none;
  device::DoorbellMode mode = device::DoorbellMode::record;
  MemoryKind blocks = MemoryKind::gpu;
  MemoryKind record = MemoryKind::gpu;
  MemoryKind payload = MemoryKind::gpu;
  bool peer_payload = false;  ///< the payload lies in another GPU's memory
  Assumptions assumptions;
};

/// What the design says: system scope is always right; GPU scope needs A1, with the queue (blocks and record)
/// and the payload in the memory of the GPU that writes; gpu_fence with a record needs A2 as well.
bool toy_is_safe(const ToyConfiguration& configuration);

/// Two WRITEs with a doorbell each; the producer waits for both completions.
Scenario toy_scenario(const ToyConfiguration& configuration);

/// All of them, in both modes, wherever the memory may lie, with and without the assumptions.
std::vector<Check> toy_checks();

}  // namespace belfry::check
