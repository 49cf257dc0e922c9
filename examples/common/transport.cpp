#include "common/transport.hpp"

#include "common/launch.hpp"

namespace belfry::examples {

namespace {

host::DeviceEndpointOptions gda_options(const Pe& pe, const std::vector<host::WindowOptions>& windows,
                                        bool self_queues) {
  host::DeviceEndpointOptions options = pe.options;
  options.windows = pe.placed(windows);
  options.self_queues = self_queues;
  if (pe.path == Path::cpu_assisted) options.doorbell_path = host::DoorbellPath::cpu_assisted;
  // PEs are often threads of one process here, and would all pin to the same CPU.
  options.forwarder.pin = false;
  options.meet(device::requirements_of<Policy>());
  return options;
}

proxy::EndpointOptions proxy_options(const Pe& pe, bool self_queues) {
  proxy::EndpointOptions options;
  options.self_queues = self_queues;
  options.connection = pe.options.connection;
  options.timeout = pe.options.timeout;
  options.pin = false;  // as above
  if (pe.on_gpu) {
    options.ring_memory = pinned_memory(pe.gpu);
    options.state = {device::MemoryKind::own, gpu_memory(pe.gpu)};
    if (pe.window_kind == device::MemoryKind::own) options.counter_memory = options.state;
  }
  return options;
}

}  // namespace

GdaTransport::GdaTransport(const Pe& pe, const std::vector<host::WindowOptions>& windows, bool self_queues)
    : endpoint_(pe.bootstrap, gda_options(pe, windows, self_queues)) {
  endpoint_.admit(device::requirements_of<Policy>());
}

std::string GdaTransport::describe() const {
  const bool assisted = endpoint_.doorbell_path() == host::DoorbellPath::cpu_assisted;
  return examples::describe(assisted ? "mini-gda with CPU-assisted doorbells" : kTransport, context());
}

ProxyTransport::ProxyTransport(const Pe& pe, const std::vector<host::WindowOptions>& windows,
                               bool self_queues)
    : windows_(pe.bootstrap, host::ProtectionDomain(host::Context::open(pe.options.context)),
               pe.placed(windows), pe.options.timeout),
      endpoint_(pe.bootstrap, windows_, proxy_options(pe, self_queues)) {}

std::string ProxyTransport::describe() const { return examples::describe("mini-proxy", context()); }

}  // namespace belfry::examples
