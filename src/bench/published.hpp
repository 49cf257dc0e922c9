#pragma once
/// \file
/// The published figures (data/published.jsonl), compiled into the library.

#include <span>
#include <string>
#include <vector>

#include "bench/record.hpp"

namespace belfry::bench {

/// All published records, in the order of the file.
const std::vector<Record>& published_records();

/// The published record with this row name and metric on a platform, or nullptr.
/// \param platform "P-IB", "P-RoCE", "P-H100" or "P-GB200"
const Record* find_published(const std::string& reference, const std::string& metric,
                             const std::string& platform);

}  // namespace belfry::bench
