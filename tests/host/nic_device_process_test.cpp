// Device endpoints in processes of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "belfry/host/tcp_bootstrap.hpp"
#include "host/device_support.hpp"

namespace belfry::host {
namespace {

/// Runs `body` in a child. \return what it returned
template <class Body>
int in_a_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

/// Each PE writes its number into the other's window, through a self queue into its own, and adds to a
/// counter.
void exchange_words(Bootstrap& bootstrap) {
  DeviceEndpointOptions options = device_options();
  options.connection = ConnectionParameters{};
  options.self_queues = true;
  const DeviceEndpoint endpoint(bootstrap, options);
  const device::EndpointView& view = endpoint.view();
  for (std::uint32_t pe = 0; pe < view.pe_count; ++pe) {
    ViewPoster poster(view, pe);
    poster.write({0, 8 * view.pe}, 70 + view.pe);
    poster.fetch_add({0, 64}, 5, view.sink + 8 * pe);
    poster.ring();
    ASSERT_TRUE(poster.drain());
  }
  bootstrap.barrier(soon());
  for (std::uint32_t pe = 0; pe < view.pe_count; ++pe) EXPECT_EQ(word(endpoint, {0, 8 * pe}), 70u + pe);
  EXPECT_EQ(word(endpoint, {0, 64}), 5u * view.pe_count);
  bootstrap.barrier(soon());
}

// Fault: anything that works within one process only: addresses, keys, registers, the exchange.
TEST(NicDeviceProcesses, ExchangeWords) {
  TcpListener listener(TcpAddress{"127.0.0.1", "0"});
  const TcpAddress address = listener.address();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      const auto bootstrap = make_tcp_leaf(address, 1, 2, soon());
      exchange_words(*bootstrap);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      _exit(2);
    }
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  const auto bootstrap = make_tcp_root(std::move(listener), 2, soon());
  exchange_words(*bootstrap);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// Sets up an endpoint with a window where only 64 KiB may be locked. \return 0 if the error says so
int exceed_the_limit(std::size_t window_bytes, std::uint32_t blocks) {
  const rlimit limit{64 << 10, 64 << 10};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 10;
  setenv("BELFRY_SOFTNIC_MEMLOCK", "enforce", 1);
  try {
    const auto alone = make_thread_bootstrap(1);
    DeviceEndpointOptions options = device_options(window_bytes);
    options.self_queues = true;
    options.blocks = blocks;
    const DeviceEndpoint endpoint(*alone[0], options);
  } catch (const Error& error) {
    const std::string_view text = error.what();
    const auto says = [&](const char* what) { return text.find(what) != std::string_view::npos; };
    if (error.kind() != ErrorKind::locked_memory) return 11;
    return says("RLIMIT_MEMLOCK is 64 KiB") && says("ulimit -l unlimited") ? 0 : 12;
  }
  return 13;
}

// Fault: field case 18: a window beyond the locked-memory limit that fails without naming it; likewise a
// queue.
TEST(NicDeviceProcesses, LockedMemoryLimitIsNamed) {
  EXPECT_EQ(in_a_child([] { return exceed_the_limit(1 << 20, 64); }), 0);
  EXPECT_EQ(in_a_child([] { return exceed_the_limit(4096, 4096); }), 0);
}

}  // namespace
}  // namespace belfry::host
