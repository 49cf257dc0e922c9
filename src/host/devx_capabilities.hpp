#pragma once
/// \file
/// QUERY_HCA_CAP through DEVX.

#include <infiniband/verbs.h>

#include "belfry/host/context.hpp"

namespace belfry::host {

/// Never throws: a device that does not answer has no DEVX, and `reason` says why.
DevxCapabilities query_devx_capabilities(ibv_context* context);

}  // namespace belfry::host
