#pragma once
/// \file
/// The fabric that a configuration asks for.

#include <memory>

#include "softnic/config.hpp"
#include "softnic/fabric/fabric.hpp"

namespace belfry::softnic {

/// A port to the shared-memory fabric `config.fabric`, behind the configured faults. Where the system
/// refuses shared fabrics (SharedFabric::obstacle() says why), a port of this process alone, and a
/// line on standard error. Throws std::system_error.
std::unique_ptr<Fabric> make_fabric(const Config& config);

}  // namespace belfry::softnic
