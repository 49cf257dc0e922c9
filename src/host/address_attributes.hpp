#pragma once
/// \file
/// From a plan to verbs attributes; both kinds of queue resolve their path with it.

#include <infiniband/verbs.h>

#include "belfry/host/connection.hpp"
#include "belfry/host/context.hpp"

namespace belfry::host {

ibv_ah_attr address_attributes(const Context& context, const ConnectionPlan& plan);

/// "QP 0x123 to 10.0.0.2 QP 0x456", for error messages.
std::string describe_pair(const QueueAddress& local, const QueueAddress& remote);

}  // namespace belfry::host
