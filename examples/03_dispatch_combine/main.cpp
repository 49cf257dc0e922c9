/// \file
/// 03: all-to-all token dispatch and combine, as mixture-of-experts layers do it. Every token goes to some of
/// the experts of all PEs; what they make of it comes back and is summed with the token's weights.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "03_dispatch_combine/kernel.hpp"
#include "03_dispatch_combine/routing.hpp"
#include "belfry/host/errors.hpp"
#include "common/launch.hpp"
#include "common/transport.hpp"

namespace belfry::examples {
namespace {

struct Options {
  std::uint64_t token_bytes = 7168;
  std::uint64_t tokens = 32;
  std::uint64_t experts = 4;
  std::uint64_t choices = 4;
  std::uint64_t imbalance = 1;
  std::uint64_t rounds = 2;
  std::uint64_t warps = 1;
  std::uint64_t seed = 1;
};

Shape shape_of(const Options& o, int pes) {
  const auto narrow = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
  if (o.token_bytes % sizeof(float) != 0)
    throw host::Error(host::ErrorKind::bad_argument, fmt::format("tokens of {} B", o.token_bytes),
                      "--token-bytes takes a multiple of 4");
  if (o.choices > o.experts * static_cast<std::uint64_t>(pes))
    throw host::Error(host::ErrorKind::bad_argument, fmt::format("{} experts for each token", o.choices),
                      fmt::format("There are only {}: lower --top-k or raise --experts", o.experts * pes));
  return {static_cast<std::uint32_t>(pes), narrow(o.experts), narrow(o.tokens), narrow(o.choices),
          narrow(o.token_bytes / sizeof(float))};
}

std::vector<host::WindowOptions> windows_of(const Shape& shape) {
  const std::uint64_t token = shape.token_bytes();
  std::vector<host::WindowOptions> windows(kSignals + 1);
  windows[kCounts].bytes = std::uint64_t{shape.pes} * shape.experts() * sizeof(std::uint32_t);
  windows[kTokens].bytes = shape.tokens * token;
  windows[kReceived].bytes = shape.most_received() * token;
  windows[kResults].bytes = shape.most_received() * token;
  windows[kReturned].bytes = shape.sent() * token;
  windows[kSignals].bytes = std::uint64_t{kPhases} * shape.pes * 8;
  return windows;
}

/// What a round's end tells of a PE: exchanged, and printed by one.
struct Summary {
  std::uint64_t checksum;
  std::uint64_t received;  ///< tokens, by all its experts
  std::uint64_t busiest;   ///< tokens of the expert that got most
};

template <class Transport>
class DispatchExample {
 public:
  DispatchExample(const Pe& pe, const Options& o)
      : pe_(pe), o_(o), shape_(shape_of(o, pe.size())), endpoint_(pe, windows_of(shape_), true) {}

  void run() {
    if (pe_.prints())
      fmt::print("dispatch and combine over {}: {} PEs, {} tokens of {} B each, top {} of {} experts\n",
                 endpoint_.describe(), shape_.pes, shape_.tokens, shape_.token_bytes(), shape_.choices,
                 shape_.experts());
    for (std::uint64_t round = 1; round <= o_.rounds; ++round) run_round(round);
  }

 private:
  Routing routing(std::uint64_t round, std::uint32_t pe) const {
    return make_routing(shape_, o_.seed, static_cast<double>(o_.imbalance), round, pe);
  }

  void run_round(std::uint64_t round) {
    const std::uint32_t me = endpoint_.view().pe;
    const Routing mine = routing(round, me);
    const std::vector<float> tokens = make_tokens(shape_, o_.seed, round, me);
    copy_in<float>(pe_, endpoint_, kTokens, tokens);
    Shared<std::uint32_t> experts(pe_, shape_.sent()), sorted(pe_, shape_.sent()), place(pe_, shape_.sent());
    Shared<float> weights(pe_, shape_.sent()), output(pe_, tokens.size());
    std::ranges::copy(mine.experts, experts.get());
    std::ranges::copy(mine.weights, weights.get());

    pe_.barrier();  // nobody's tokens arrive where the last round's are still in use
    launch(pe_, "dispatch_combine", {1, static_cast<std::uint32_t>(o_.warps) * port::kWarpSize},
           DispatchCombine<typename Transport::Endpoint>{endpoint_.view(), shape_, round, pe_.timeout(),
                                                         experts.get(), weights.get(), sorted.get(),
                                                         place.get(), output.get()});

    const std::vector<float> got(output.span().begin(), output.span().end());
    const std::vector<float> expected = reference_output(shape_, mine, tokens);
    if (got != expected)
      throw host::Error(host::ErrorKind::completion,
                        fmt::format("round {}: the checksum is {:016x}, the reference's is {:016x}", round,
                                    checksum(got), checksum(expected)),
                        "");
    print(round, exchange(summary(round, checksum(got))));
  }

  /// Checks what the experts here were sent against every PE's routing.
  Summary summary(std::uint64_t round, std::uint64_t sum) const {
    const auto matrix =
        copy_out<std::uint32_t>(pe_, endpoint_, kCounts, std::size_t{shape_.pes} * shape_.experts());
    std::vector<std::uint64_t> load(shape_.experts());
    for (std::uint32_t pe = 0; pe < shape_.pes; ++pe) {
      const std::vector<std::uint32_t> counts = count_tokens(shape_, routing(round, pe));
      if (!std::equal(counts.begin(), counts.end(), matrix.begin() + pe * shape_.experts()))
        throw host::Error(host::ErrorKind::completion,
                          fmt::format("round {}: the counts of PE {} are not what it sends", round, pe), "");
      for (std::size_t e = 0; e < load.size(); ++e) load[e] += counts[e];
    }
    const auto first = load.begin() + endpoint_.view().pe * shape_.experts_a_pe;
    const auto last = first + shape_.experts_a_pe;
    return {sum, std::accumulate(first, last, std::uint64_t{0}), *std::max_element(first, last)};
  }

  /// All PEs' summaries. That all have come means that all are done.
  std::vector<Summary> exchange(const Summary& mine) const {
    std::vector<Summary> all;
    for (const host::Blob& blob : pe_.bootstrap.all_gather(std::as_bytes(std::span(&mine, 1)),
                                                           host::deadline_after(2 * pe_.patience))) {
      Summary& next = all.emplace_back();
      std::memcpy(&next, blob.data(), std::min(sizeof next, blob.size()));
    }
    return all;
  }

  void print(std::uint64_t round, const std::vector<Summary>& all) const {
    if (!pe_.prints()) return;
    for (std::size_t pe = 0; pe < all.size(); ++pe)
      fmt::print("  round {} PE {}: {} tokens to its experts, {} to the busiest; checksum {:016x} verified\n",
                 round, pe, all[pe].received, all[pe].busiest, all[pe].checksum);
  }

  const Pe& pe_;
  Options o_;
  Shape shape_;
  Transport endpoint_;
};

}  // namespace
}  // namespace belfry::examples

int main(int argc, char** argv) {
  namespace examples = belfry::examples;
  examples::Program program("03_dispatch_combine", "All-to-all token dispatch and combine with top-k routing",
                            {4, 2, 8});
  examples::Options o;
  program.option("--token-bytes", o.token_bytes, 4, 1 << 20, "Size of a token, B");
  program.option("--tokens", o.tokens, 1, 4096, "Tokens of each PE");
  program.option("--experts", o.experts, 1, 64, "Experts of each PE");
  program.option("--top-k", o.choices, 1, 16, "Experts that a token goes to");
  program.option("--imbalance", o.imbalance, 0, 4, "How unequal experts are: the r-th gets 1 / r^N");
  program.option("--rounds", o.rounds, 1, 1000, "Layers in a row, with other tokens each");
  program.option("--warps", o.warps, 1, 32, "Warps of each PE's block");
  program.option("--seed", o.seed, 0, UINT32_MAX, "Seed of tokens and routing");
  program.path_option();
  return program.run(argc, argv, [&](const examples::Pe& pe) {
    examples::with_transport(pe, [&](auto transport) {
      examples::DispatchExample<typename decltype(transport)::type>(pe, o).run();
    });
  });
}
