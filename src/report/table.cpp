#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace belfry::report {
namespace {

void append_cell(std::string& line, const std::string& cell, std::size_t width, Align align) {
  const std::string padding(width - cell.size(), ' ');
  line += align == Align::left ? cell + padding : padding + cell;
}

void trim(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

void Table::add(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(
        fmt::format("a row of {} cells in a table of {} columns", cells.size(), columns_.size()));
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = columns_[c].title.size();
    for (const auto& row : rows_) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  const auto render = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      append_cell(line, cell_of(c), widths[c], columns_[c].align);
    }
    trim(line);
    return line + '\n';
  };
  std::string text = render([&](std::size_t c) { return columns_[c].title; });
  text += render([&](std::size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) text += render([&](std::size_t c) { return row[c]; });
  return text;
}

std::string format_figure(const std::optional<double>& value) {
  if (!value) return "-";
  const double size = std::fabs(*value);
  if (size == 0) return "0";
  if (size < 0.01) return fmt::format("{:.4f}", *value);
  if (size < 1) return fmt::format("{:.3f}", *value);
  if (size < 100) return fmt::format("{:.2f}", *value);
  if (size < 1000) return fmt::format("{:.1f}", *value);
  return fmt::format("{:.0f}", *value);
}

}  // namespace belfry::report
