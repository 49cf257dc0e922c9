/// \file
/// 01: every PE writes a buffer to its right neighbour, and checks the one that it got from its left.

#include <cstdio>
#include <vector>

#include "01_put_and_wait/kernel.hpp"
#include "belfry/host/errors.hpp"
#include "common/launch.hpp"
#include "common/transport.hpp"

namespace belfry::examples {
namespace {

/// What PE `rank` sends: bytes that differ by PE and by position.
std::vector<unsigned char> payload_of(int rank, std::uint64_t bytes) {
  std::vector<unsigned char> payload(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i)
    payload[i] = static_cast<unsigned char>(i * 131 + (i >> 8) + static_cast<std::uint64_t>(rank) * 17 + 1);
  return payload;
}

void run(const Pe& pe, std::uint64_t bytes) {
  // [setup]
  // A window is memory that every PE registers with the same size; (window, offset) names a byte of it.
  host::DeviceEndpointOptions options = pe.options;
  options.windows = {{.bytes = bytes}, {.bytes = bytes}, {.bytes = 8}};
  options.windows = pe.placed(options.windows);  // --lanes cuda: in the GPU's memory
  options.meet(device::requirements_of<Policy>());
  const host::DeviceEndpoint endpoint(pe.bootstrap, options);
  // Refuses a policy that these queues and windows could lose data under.
  endpoint.admit(device::requirements_of<Policy>());
  // [setup]

  copy_in<unsigned char>(pe, endpoint, kOutbox, payload_of(pe.rank(), bytes));
  pe.barrier();  // nobody writes before every inbox and flag is as it should be
  launch(pe, "put_and_wait", {1, 1}, PutAndWait<Endpoint>{endpoint.view(), bytes, pe.timeout()});

  const int left = (pe.rank() + pe.size() - 1) % pe.size();
  if (copy_out<unsigned char>(pe, endpoint, kInbox, bytes) != payload_of(left, bytes))
    throw host::Error(host::ErrorKind::completion, "the payload differs from what was sent", "");
  pe.barrier();  // nobody's queues go away while a peer still uses them
  if (pe.prints())
    std::printf("%d PEs put %llu B to their right neighbours over %s; all of it arrived\n", pe.size(),
                static_cast<unsigned long long>(bytes), describe(kTransport, endpoint.context()).c_str());
}

}  // namespace
}  // namespace belfry::examples

int main(int argc, char** argv) {
  namespace examples = belfry::examples;
  examples::Program program("01_put_and_wait", "Write to a peer, wait for the acknowledgement, and tell it",
                            {2, 2, 64});
  std::uint64_t bytes = 4096;
  program.option("--bytes", bytes, 1, std::uint64_t{1} << 30, "Payload of each put, B");
  return program.run(argc, argv, [&](const examples::Pe& pe) { examples::run(pe, bytes); });
}
