#pragma once
/// \file
/// Experiments between two ranks: threads of this process, this process and one that it starts, or two that a
/// launcher has started.

#include <functional>
#include <string>
#include <vector>

#include "belfry/host/bootstrap.hpp"
#include "bench/experiment.hpp"

namespace belfry::bench {

/// What either rank does in a group of two. Both make the same exchanges in the same order.
struct TwoRanks {
  std::function<std::vector<Record>(RunContext&, host::Bootstrap&)> measure;  ///< rank 0
  std::function<void(RunContext&, host::Bootstrap&)> serve;                   ///< rank 1
};

/// Rank 0, the other one started as the options say. Throws what either rank threw: the cause, where one
/// failed because the other had.
std::vector<Record> run_two_ranks(RunContext& run, const TwoRanks& ranks);

/// Rank 1 of two processes. \param address HOST:PORT of rank 0
void serve_peer(RunContext& run, const std::string& address, const TwoRanks& ranks);

}  // namespace belfry::bench
