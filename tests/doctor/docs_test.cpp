/// docs/doctor.md against the code.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "doctor/doctor.hpp"

namespace belfry::doctor {
namespace {

/// A row of the table: cells without their blanks; "\|" is a bar within one.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else if (line[i] == '|') {
      const std::size_t first = cell.find_first_not_of(' ');
      const std::size_t last = cell.find_last_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string row_of(const Rule& rule) {
  return "| " + std::string(rule.id) + " | " + std::string(to_string(rule.severity)) + " | " +
         escape(rule.meaning) + " | " + (rule.remedy.empty() ? "" : escape(rule.remedy) + " ") + "|";
}

// Fault: the document describes findings that are gone, or keeps silent about new ones.
TEST(Document, ListsEveryFinding) {
  std::ifstream in(BELFRY_DOCTOR_DOCUMENT);
  ASSERT_TRUE(in) << BELFRY_DOCTOR_DOCUMENT;
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    const auto cells = cells_of(line);
    if (line.starts_with("| ") && cells.size() == 4 && cells[0].find('.') != std::string::npos)
      rows[cells[0]] = cells;
  }
  for (const Rule& rule : catalogue()) {
    const auto row = rows.find(std::string(rule.id));
    ASSERT_NE(row, rows.end()) << "missing row:\n" << row_of(rule);
    const std::vector<std::string> expected = {std::string(rule.id), std::string(to_string(rule.severity)),
                                               std::string(rule.meaning), std::string(rule.remedy)};
    EXPECT_EQ(row->second, expected) << "should be:\n" << row_of(rule);
    rows.erase(row);
  }
  for (const auto& [id, cells] : rows) ADD_FAILURE() << id << " is in the document, and no finding";
}

// Fault: a check without a line in the document.
TEST(Document, ListsEveryCheck) {
  std::ifstream in(BELFRY_DOCTOR_DOCUMENT);
  std::stringstream text;
  text << in.rdbuf();
  for (const Check& check : checks()) {
    EXPECT_NE(text.str().find("### " + std::string(check.name) + "\n"), std::string::npos) << check.name;
  }
}

}  // namespace
}  // namespace belfry::doctor
