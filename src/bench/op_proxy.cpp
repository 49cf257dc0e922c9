#include "bench/op_proxy.hpp"

#include <utility>

#include "bench/proxy_group.hpp"

namespace belfry::bench {

ProxyPath::ProxyPath(const OpEnd& end, const host::Windows& windows, bool crowded, KernelRunner& runner,
                     const Clock& clock, std::string arm)
    : endpoint_(end.group(), windows, proxy_options(crowded)),
      path_(endpoint_.view(), end.peer(), end.seed(), runner, runner, clock, std::move(arm)) {}

}  // namespace belfry::bench
