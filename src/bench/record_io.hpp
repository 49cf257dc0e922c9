#pragma once
/// \file
/// Records as JSON lines (one object a line) and as CSV (RFC 4180, one header line). Both carry the same
/// fields; docs/records.md states them. Writers refuse records that break the schema, so that no NaN and
/// no infinity ever reaches a file; readers refuse other schema versions, missing, unknown and repeated
/// fields, and say in which line.

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record.hpp"

namespace belfry::bench {

/// One line of JSON, without the newline. Throws RecordError.
std::string to_json_line(const Record& record);

/// Throws RecordError.
Record from_json_line(std::string_view line);

/// All records of a stream, blank lines skipped. Throws RecordError that names `name` and the line.
std::vector<Record> read_json_lines(std::istream& in, const std::string& name);

/// The header line and one row a record, each without its newline. Throws RecordError.
std::string csv_header();
std::string to_csv_row(const Record& record);

/// All records of a CSV stream. Throws RecordError that names `name` and the row.
std::vector<Record> read_csv(std::istream& in, const std::string& name);

/// Quotes a cell where RFC 4180 asks for it.
std::string csv_cell(std::string_view text);

}  // namespace belfry::bench
