#pragma once
/// \file
/// The JSON forms of a record's parts, shared by the JSON-lines and CSV sides.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record.hpp"

namespace belfry::bench {

using Json = nlohmann::ordered_json;  // keeps the order of keys

Json fields_to_json(const Fields& fields);
Fields fields_of(const Json& object, const char* name);
std::vector<double> passes_of(const Json& array);

/// Strict parse and dump. Both throw RecordError.
Json parse_strictly(std::string_view text);
std::string dump(const Json& json);

}  // namespace belfry::bench
