#pragma once
/// \file
/// Whether queues and windows meet a policy's requirements. Pure.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "belfry/device/requirements.hpp"

namespace belfry::host {

struct AdmissionFacts {
  std::span<const device::SendQueue> queues;  ///< by slot; state is null where there is none
  std::uint32_t queues_a_peer = 1;
  std::vector<device::MemoryKind> windows;  ///< where each lies
  std::uint32_t max_inline = 0;             ///< bytes
  std::vector<std::uint32_t> uar_pages;     ///< by slot: the device's page of the doorbell register
};

struct Refusal {
  std::string what;    ///< which requirement fails, and where
  std::string remedy;  ///< what to change
};

/// Empty if all is met.
std::vector<Refusal> find_refusals(const device::Requirements& requirements, const AdmissionFacts& facts);

}  // namespace belfry::host
