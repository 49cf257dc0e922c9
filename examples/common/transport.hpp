#pragma once
/// \file
/// The transport of the examples, in one place: another one is another `Policy` and another `Endpoint`.

#include "belfry/device/gda.hpp"

namespace belfry::examples {

/// What the kernels are compiled for. Derive and override to try another ordering, sharing or payload.
struct Policy : device::DefaultPolicy {};

using Endpoint = device::gda::Endpoint<Policy>;
inline constexpr const char* kTransport = "mini-gda";

}  // namespace belfry::examples
