/// \file
/// 02: what a payload with a signal costs there and back, as percentiles over many rounds.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "02_ping_pong/kernel.hpp"
#include "belfry/host/errors.hpp"
#include "common/launch.hpp"
#include "common/transport.hpp"

namespace belfry::examples {
namespace {

struct Options {
  std::uint64_t bytes = 8;
  std::uint64_t rounds = 500;
  std::uint64_t warmup = 50;
};

template <class Transport>
void print(const Options& o, const Transport& transport, std::vector<std::uint64_t> ns) {
  std::sort(ns.begin(), ns.end());
  // The nearest rank: a round trip that really took place.
  const auto at = [&](std::uint64_t percent) {
    return static_cast<double>(ns[std::max<std::uint64_t>((percent * ns.size() + 99) / 100, 1) - 1]) / 1000;
  };
  fmt::print("ping-pong of {} B over {}, {} rounds\n", o.bytes, transport.describe(), ns.size());
  fmt::print("  round trip  p10 {:.2f}  p50 {:.2f}  p90 {:.2f}  p99 {:.2f}  min {:.2f}  max {:.2f} us\n",
             at(10), at(50), at(90), at(99), at(0), at(100));
  fmt::print("  one way     p50 {:.2f} us, half of a round trip\n", at(50) / 2);
  if (transport.context().is_software_nic())
    fmt::print(
        "  The NIC is software: these are this machine's figures, and say nothing about a ConnectX.\n");
}

template <class Transport>
void run(const Pe& pe, const Options& o) {
  const Transport transport(pe, {{.bytes = o.bytes}, {.bytes = o.bytes}, {.bytes = 8}});

  const std::uint64_t rounds = o.warmup + o.rounds;
  Shared<std::uint64_t> round_trips(pe, rounds);
  Shared<std::uint64_t> wrong(pe);
  pe.barrier();
  launch(pe, "ping_pong", {1, 1},
         PingPong<typename Transport::Endpoint>{transport.view(), o.bytes, rounds, pe.timeout(),
                                                round_trips.get(), wrong.get()});
  if (wrong.span().front() != 0)
    throw host::Error(host::ErrorKind::completion,
                      fmt::format("{} payloads were not those of their round", wrong.span().front()), "");
  pe.barrier();
  const auto measured = round_trips.span().subspan(o.warmup);
  if (pe.prints()) print(o, transport, {measured.begin(), measured.end()});
}

}  // namespace
}  // namespace belfry::examples

int main(int argc, char** argv) {
  namespace examples = belfry::examples;
  examples::Program program("02_ping_pong", "Latency of a payload with a signal, there and back", {2, 2, 2});
  examples::Options options;
  program.option("--bytes", options.bytes, 8, std::uint64_t{1} << 26, "Payload, B");
  program.option("--rounds", options.rounds, 1, 100000000, "Round trips that are measured");
  program.option("--warmup", options.warmup, 0, 1000000, "Round trips before those");
  program.path_option();
  return program.run(argc, argv, [&](const examples::Pe& pe) {
    examples::with_transport(
        pe, [&](auto transport) { examples::run<typename decltype(transport)::type>(pe, options); });
  });
}
