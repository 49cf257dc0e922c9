#include <charconv>
#include <istream>
#include <iterator>

#include "bench/record_io.hpp"
#include "bench/record_json.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kColumns[] = {
    "schema", "run",  "experiment", "arm",   "platform", "nic",       "source",   "parameters",
    "metric", "unit", "passes",     "count", "p10",      "p50",       "p90",      "p99",
    "min",    "max",  "lower",      "upper", "verified", "reference", "versions",
};
constexpr std::size_t kColumnCount = std::size(kColumns);

std::string cell_of(const std::optional<double>& value) {
  if (!value) return {};
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, *value);
  return std::string(text, end.ptr);
}

template <class T>
T number_of(const std::string& cell, const char* column) {
  T value{};
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) {
    throw RecordError(std::string("column '") + column + "': '" + cell + "' is not a number it can hold");
  }
  return value;
}

std::optional<double> optional_number(const std::string& cell, const char* column) {
  if (cell.empty()) return std::nullopt;
  return number_of<double>(cell, column);
}

std::optional<bool> optional_bool(const std::string& cell) {
  if (cell.empty()) return std::nullopt;
  if (cell == "true") return true;
  if (cell == "false") return false;
  throw RecordError("column 'verified': '" + cell + "' is none of true, false and empty");
}

/// Reads one row, which may span lines inside quotes.
/// \return false at the end of the stream
bool read_row(std::istream& in, std::vector<std::string>& cells) {
  cells.assign(1, {});
  bool quoted = false;
  bool after_quote = false;
  bool any = false;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    any = true;
    if (quoted) {
      if (c != '"') {
        cells.back().push_back(static_cast<char>(c));
      } else if (in.peek() == '"') {
        cells.back().push_back(static_cast<char>(in.get()));
      } else {
        quoted = false;
        after_quote = true;
      }
    } else if (c == ',') {
      cells.emplace_back();
      after_quote = false;
    } else if (c == '\n') {
      return true;
    } else if (c == '\r' && in.peek() == '\n') {
      continue;
    } else if (c == '"' && cells.back().empty() && !after_quote) {
      quoted = true;
    } else if (c == '"' || after_quote) {
      throw RecordError("a quote in the middle of a cell; cells with quotes are quoted and double them");
    } else {
      cells.back().push_back(static_cast<char>(c));
    }
  }
  if (quoted) throw RecordError("the file ends inside a quoted cell");
  return any;
}

void check_header(const std::vector<std::string>& cells) {
  if (cells.size() != kColumnCount) {
    throw RecordError("the header has " + std::to_string(cells.size()) + " columns; schema " +
                      std::to_string(kRecordSchema) + " has " + std::to_string(kColumnCount));
  }
  for (std::size_t i = 0; i < kColumnCount; ++i) {
    if (cells[i] != kColumns[i]) {
      throw RecordError("column " + std::to_string(i + 1) + " is '" + cells[i] + "', not '" + kColumns[i] +
                        "'");
    }
  }
}

Record record_of(const std::vector<std::string>& cells) {
  if (cells[0] != std::to_string(kRecordSchema)) {
    throw RecordError("schema version '" + cells[0] + "' is unknown; this belfry reads version " +
                      std::to_string(kRecordSchema) + ". Read the file with the belfry that wrote it");
  }
  if (cells.size() != kColumnCount) {
    throw RecordError(std::to_string(cells.size()) + " cells; schema " + std::to_string(kRecordSchema) +
                      " has " + std::to_string(kColumnCount));
  }
  Record record;
  record.run = cells[1];
  record.experiment = cells[2];
  record.arm = cells[3];
  record.platform = fields_of(parse_strictly(cells[4]), "platform");
  record.nic = nic_kind_of(cells[5]);
  record.source = source_of(cells[6]);
  record.parameters = fields_of(parse_strictly(cells[7]), "parameters");
  record.metric = cells[8];
  record.unit = cells[9];
  record.passes = passes_of(parse_strictly(cells[10]));
  record.count = number_of<std::uint64_t>(cells[11], "count");
  std::optional<double>* const numbers[] = {&record.p10, &record.p50, &record.p90,   &record.p99,
                                            &record.min, &record.max, &record.lower, &record.upper};
  for (std::size_t i = 0; i < std::size(numbers); ++i) {
    *numbers[i] = optional_number(cells[12 + i], kColumns[12 + i]);
  }
  record.verified = optional_bool(cells[20]);
  record.reference = cells[21];
  record.versions = fields_of(parse_strictly(cells[22]), "versions");
  check(record);
  return record;
}

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_header() {
  std::string line;
  for (const char* column : kColumns) {
    if (!line.empty()) line += ',';
    line += column;
  }
  return line;
}

std::string to_csv_row(const Record& record) {
  check(record);
  const std::string cells[kColumnCount] = {
      std::to_string(kRecordSchema),
      record.run,
      record.experiment,
      record.arm,
      dump(fields_to_json(record.platform)),
      std::string(name_of(record.nic)),
      std::string(name_of(record.source)),
      dump(fields_to_json(record.parameters)),
      record.metric,
      record.unit,
      dump(Json(record.passes)),
      std::to_string(record.count),
      cell_of(record.p10),
      cell_of(record.p50),
      cell_of(record.p90),
      cell_of(record.p99),
      cell_of(record.min),
      cell_of(record.max),
      cell_of(record.lower),
      cell_of(record.upper),
      record.verified ? (*record.verified ? "true" : "false") : "",
      record.reference,
      dump(fields_to_json(record.versions)),
  };
  std::string line = csv_cell(cells[0]);
  for (std::size_t i = 1; i < kColumnCount; ++i) line += ',' + csv_cell(cells[i]);
  return line;
}

std::vector<Record> read_csv(std::istream& in, const std::string& name) {
  std::vector<Record> records;
  std::vector<std::string> cells;
  std::size_t row = 1;
  try {
    if (!read_row(in, cells)) throw RecordError("the file is empty; it should begin with the header line");
    check_header(cells);
    for (row = 2; read_row(in, cells); ++row) {
      if (cells.size() == 1 && cells[0].empty()) continue;
      records.push_back(record_of(cells));
    }
  } catch (const RecordError& error) {
    throw RecordError(name + " row " + std::to_string(row) + ": " + error.what());
  }
  return records;
}

}  // namespace belfry::bench
