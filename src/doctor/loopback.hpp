#pragma once
/// \file
/// RDMA WRITEs from a device to itself, over two connected queues of one process.

#include <vector>

#include "belfry/host/context.hpp"
#include "doctor/trials.hpp"

namespace belfry::doctor {

/// On verbs queues, whose WQEs the provider writes, and on DEVX queues, where this program writes WQE and
/// doorbell itself as a GPU would. Failures are in the proofs.
std::vector<Proof> prove_loopback(const host::Context& context);

}  // namespace belfry::doctor
