#pragma once
/// \file
/// Aligned text tables.

#include <optional>
#include <string>
#include <vector>

namespace belfry::report {

enum class Align : unsigned char { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Throws std::invalid_argument unless there is one cell a column.
  void add(std::vector<std::string> cells);

  /// Title line, a rule, and the rows; columns are two blanks apart, no line has blanks at its end.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A figure with two to four digits behind the point, fewer the larger it is; "-" for none.
std::string format_figure(const std::optional<double>& value);

}  // namespace belfry::report
