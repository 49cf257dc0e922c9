#include <fmt/format.h>

#include <algorithm>

#include "check/documents.hpp"
#include "check/litmus_shapes.hpp"

namespace belfry::check {
namespace {

constexpr const char* kHead = R"(# Litmus tests of the checker's memory

Written by `belfry-check litmus`; a test holds this file against what the memory does today. How the memory works is in
[checker.md](checker.md).

Each cell is one program: the thread of the row is ordered as the row says, the thread of the column as the column says.
Accesses that nothing is said of are relaxed and of system scope; `x` and `y` start at 0.

- **weak**: the outcome named above the table can happen, by the PTX memory model and in the checker's memory.
- **-**: it cannot, in either.

A cell in which the two differ would say so; there is none. Not only the outcome that is named but the set of all outcomes
of each program is the same in both. The PTX side is not a list of expectations: `tests/check/ptx_axioms.cpp` builds every
candidate execution and holds it against the axioms of the PTX ISA, and shares no code with the memory.
)";

bool happens(const LitmusTable& table, const Outcomes& outcomes) {
  return std::any_of(outcomes.begin(), outcomes.end(), table.weak);
}

std::string cell(const LitmusTable& table, const Program& program) {
  const Outcomes model = ptx_outcomes(program);
  const Outcomes checker = checker_outcomes(program);
  if (model != checker) return fmt::format("PTX {}, here {}", happens(table, model), happens(table, checker));
  return happens(table, model) ? "weak" : "-";
}

std::string rule(std::size_t columns) {
  std::string text = "|---|";
  for (std::size_t i = 0; i < columns; ++i) text += "---|";
  return text + "\n";
}

}  // namespace

std::string litmus_document() {
  std::string text = kHead;
  std::string shape;
  for (const LitmusTable& table : litmus_tables()) {
    if (table.shape != shape) {
      shape = table.shape;
      text += fmt::format("\n## {}\n\n{} Weak: {}.\n", shape, table.program, table.outcome);
    }
    text += fmt::format("\n{}:\n\n| {} |", table.placement, table.rows_title);
    for (const std::string& column : table.columns) text += fmt::format(" {} |", column);
    text += "\n" + rule(table.columns.size());
    for (const LitmusRow& row : table.rows) {
      text += fmt::format("| {} |", row.name);
      for (const Program& program : row.programs) text += fmt::format(" {} |", cell(table, program));
      text += "\n";
    }
  }
  return text;
}

}  // namespace belfry::check
