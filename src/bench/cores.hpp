#pragma once

namespace belfry::bench {

/// Cores that this process may use (its affinity mask, not what the machine has).
unsigned usable_cores();

}  // namespace belfry::bench
