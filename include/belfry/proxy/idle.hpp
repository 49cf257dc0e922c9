#pragma once
/// \file
/// What a worker does while its rings are empty.

#include "belfry/host/idle.hpp"

namespace belfry::proxy {

using host::IdlePolicy;
using host::Idler;

}  // namespace belfry::proxy
