#pragma once
/// \file
/// The text that `belfry bench` prints: the records of one run, joined with the published ones.

#include <span>
#include <string>
#include <vector>

#include "bench/record.hpp"

namespace belfry::report {

/// The platform whose published figures stand beside measured ones.
inline constexpr const char* kComparedPlatform = "P-IB";

/// Platform, NIC (a software one in words that cannot be missed), notes.
/// \param title what the run measured
std::string header_text(const std::string& title, std::span<const bench::Record> records,
                        const std::vector<std::string>& notes);

/// One row a record: its percentiles, whether the payload verified, and beside them the published figure
/// of its reference row and metric on kComparedPlatform, where there is one.
std::string measured_table(std::span<const bench::Record> records, std::span<const bench::Record> published);

/// The published figures of an experiment on kComparedPlatform, one row an arm, one column a metric.
/// \return "" if there are none
std::string published_table(const std::string& experiment, std::span<const bench::Record> published);

}  // namespace belfry::report
