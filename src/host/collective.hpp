#pragma once
/// \file
/// Set-up steps that all ranks take together: what fails on one rank fails on all, at once and with its
/// name, instead of leaving the others to their deadlines.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/host/bootstrap.hpp"
#include "belfry/host/errors.hpp"

namespace belfry::host {

/// Runs `make` and exchanges what it returns. If it throws on some rank, that rank rethrows and every other
/// throws an Error of the same kind, which names the lowest such rank and says what it said.
/// \param step what is done, for messages: "make its windows"
std::vector<Blob> exchange(Bootstrap& bootstrap, std::string_view step, const std::function<Blob()>& make,
                           Deadline deadline);

struct OddRank {
  std::size_t odd = 0;    ///< the lowest rank that differs
  std::size_t usual = 0;  ///< the lowest rank of those that it differs from
};

/// Which rank differs from what most ranks say (from what rank 0's group says, where two are as large).
/// Every rank finds the same answer. \return nothing if all are equal
template <class T>
std::optional<OddRank> find_odd_rank(const std::vector<T>& values) {
  std::size_t usual = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < values.size() && most * 2 <= values.size(); ++i) {
    std::size_t equal = 0;
    for (const T& value : values) equal += value == values[i] ? 1 : 0;
    if (equal > most) {
      most = equal;
      usual = i;
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] == values[usual])) return OddRank{i, usual};
  return std::nullopt;
}

/// "rank 2 has 8 KiB, rank 0 has 4 KiB".
std::string describe_difference(const OddRank& rank, const std::string& odd, const std::string& usual);

}  // namespace belfry::host
