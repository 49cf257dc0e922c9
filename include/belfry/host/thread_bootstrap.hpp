#pragma once
/// \file
/// A bootstrap whose ranks are threads of one process.

#include <memory>
#include <vector>

#include "belfry/host/bootstrap.hpp"

namespace belfry::host {

/// One membership a rank, to be moved to its thread. A membership that is destroyed has left: ranks that
/// still wait for it get not_reachable.
/// \param size 1..65536; throws Error (bad_argument)
std::vector<std::unique_ptr<Bootstrap>> make_thread_bootstrap(int size);

}  // namespace belfry::host
